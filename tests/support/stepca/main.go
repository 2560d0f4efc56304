// A step-ca of Debian's golang-github-smallstep-certificates-dev: its server, set up as docs/production.md says, and its
// client, which asks it for one certificate and ends.
//
//	stepca FOLDER TEMPLATE HOST:PORT SUBJECT SAN…
//
// FOLDER has root.pem, inter.pem and inter.key. The program writes issued.pem (the certificate, the intermediate behind
// it) and issued.key there.
package main

import (
	"encoding/json"
	"encoding/pem"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/smallstep/certificates/api"
	"github.com/smallstep/certificates/authority/config"
	"github.com/smallstep/certificates/ca"
	"go.step.sm/crypto/jose"
	"go.step.sm/crypto/pemutil"
)

const (
	lifetime    = "8760h"
	provisioner = "parties"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// settings are a ca.json with one provisioner, as `step ca provisioner add` writes them.
func settings(folder, template, address string, password []byte) *config.Config {
	public, private, err := jose.GenerateDefaultKeyPair(password)
	check(err)
	sealed, err := private.CompactSerialize()
	check(err)
	text, err := json.Marshal(map[string]any{
		"root":     filepath.Join(folder, "root.pem"),
		"crt":      filepath.Join(folder, "inter.pem"),
		"key":      filepath.Join(folder, "inter.key"),
		"address":  address,
		"dnsNames": []string{"localhost"},
		"authority": map[string]any{"provisioners": []any{map[string]any{
			"type": "JWK", "name": provisioner, "key": public, "encryptedKey": sealed,
			"claims":  map[string]any{"maxTLSCertDuration": lifetime, "defaultTLSCertDuration": lifetime},
			"options": map[string]any{"x509": map[string]any{"templateFile": template}},
		}}},
	})
	check(err)
	var found config.Config
	check(json.Unmarshal(text, &found))
	return &found
}

// ask gets a certificate, as `step ca certificate` does.
func ask(folder, address string, password []byte, subject string, sans []string) error {
	asked, err := ca.NewProvisioner(provisioner, "", "https://"+address, password,
		ca.WithRootFile(filepath.Join(folder, "root.pem")))
	if err != nil {
		return err
	}
	token, err := asked.Token(subject, sans...)
	if err != nil {
		return err
	}
	request, key, err := ca.CreateSignRequest(token)
	if err != nil {
		return err
	}
	request.NotAfter = api.NewTimeDuration(time.Now().Add(90 * 24 * time.Hour))
	signed, err := asked.Sign(request)
	if err != nil {
		return err
	}
	var chain []byte
	for _, one := range signed.CertChainPEM {
		block, err := pemutil.Serialize(one.Certificate)
		if err != nil {
			return err
		}
		chain = append(chain, pem.EncodeToMemory(block)...)
	}
	if err := os.WriteFile(filepath.Join(folder, "issued.pem"), chain, 0o644); err != nil {
		return err
	}
	_, err = pemutil.Serialize(key, pemutil.ToFile(filepath.Join(folder, "issued.key"), 0o600))
	return err
}

func main() {
	folder, template, address := os.Args[1], os.Args[2], os.Args[3]
	password := []byte("a password of this run")
	server, err := ca.New(settings(folder, template, address, password), ca.WithQuiet(true))
	check(err)
	go func() { log.Print(server.Run()) }()
	for last := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		err := ask(folder, address, password, os.Args[4], os.Args[5:])
		if err == nil {
			return
		}
		if time.Now().After(last) {
			log.Fatal(err)
		}
	}
}

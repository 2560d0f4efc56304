// Logcheck verifies a tiled transparency log from its files and its key, and from nothing of ours: hashes, proofs and
// signatures are those of golang.org/x/mod/sumdb/tlog and .../note. It reads every entry bundle, rebuilds every tile
// and compares it byte for byte, compares the root with the signed checkpoint, and checks an inclusion proof and a
// consistency proof that are made from the files.
//
//	logcheck DIR VKEY [OLD]
//
// VKEY is the log's verifier key; its name is the origin that the checkpoint must have. OLD is a file with an older
// checkpoint of the log, which the newest one must be consistent with. Exit 0: the log is good.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const height = 8 // of a tile, so that a full one holds 256 hashes

type checkpoint struct {
	size int64
	root tlog.Hash
}

func main() {
	if len(os.Args) != 3 && len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: logcheck DIR VKEY [OLD]")
		os.Exit(2)
	}
	newest, err := check(os.Args[1], os.Args[2], os.Args[3:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "logcheck: REFUSED:", err)
		os.Exit(1)
	}
	fmt.Printf("logcheck: OK: %d entries, root %s\n", newest.size, newest.root)
}

func check(dir, vkey string, old []string) (*checkpoint, error) {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return nil, err
	}
	newest, err := readCheckpoint(filepath.Join(dir, "checkpoint"), verifier)
	if err != nil {
		return nil, err
	}
	hashes, err := readEntries(dir, newest.size)
	if err != nil {
		return nil, err
	}
	stored := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		found := make([]tlog.Hash, len(indexes))
		for nth, index := range indexes {
			if index >= int64(len(hashes)) {
				return nil, fmt.Errorf("no stored hash %d", index)
			}
			found[nth] = hashes[index]
		}
		return found, nil
	})
	root := tlog.Hash(sha256.Sum256(nil)) // of the empty tree
	if newest.size > 0 {
		if root, err = tlog.TreeHash(newest.size, stored); err != nil {
			return nil, err
		}
	}
	if root != newest.root {
		return nil, fmt.Errorf("the entries have the root %s, the checkpoint says %s", root, newest.root)
	}
	for _, tile := range tilesOf(newest.size) {
		want, err := tlog.ReadTileData(tile, stored)
		if err != nil {
			return nil, err
		}
		have, err := os.ReadFile(filepath.Join(dir, path(tile)))
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(have, want) {
			return nil, fmt.Errorf("%s is not the tile that the entries make", path(tile))
		}
	}
	if err := checkProofs(dir, newest, hashes); err != nil {
		return nil, err
	}
	for _, file := range old {
		older, err := readCheckpoint(file, verifier)
		if err != nil {
			return nil, err
		}
		if err := checkConsistency(tiles(dir, newest), older, newest); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return newest, nil
}

// tilesOf lists the hash tiles of a tree: those that are full, and the last one of each level.
func tilesOf(size int64) []tlog.Tile {
	var all []tlog.Tile
	for level := 0; size>>(height*level) > 0; level++ {
		held := size >> (height * level)
		for first := int64(0); first < held; first += 1 << height {
			width := held - first
			if width > 1<<height {
				width = 1 << height
			}
			all = append(all, tlog.Tile{H: height, L: level, N: first >> height, W: int(width)})
		}
	}
	return all
}

// readEntries gives the stored hashes of a tree made from the entry bundles.
func readEntries(dir string, size int64) ([]tlog.Hash, error) {
	var hashes []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		found := make([]tlog.Hash, len(indexes))
		for nth, index := range indexes {
			found[nth] = hashes[index]
		}
		return found, nil
	})
	for first := int64(0); first < size; first += 1 << height {
		width := size - first
		if width > 1<<height {
			width = 1 << height
		}
		name := path(tlog.Tile{H: height, L: -1, N: first >> height, W: int(width)})
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		for index := first; index < first+width; index++ {
			if len(data) < 2 || len(data)-2 < int(data[0])<<8|int(data[1]) {
				return nil, fmt.Errorf("%s ends before its entries do", name)
			}
			end := 2 + (int(data[0])<<8 | int(data[1]))
			more, err := tlog.StoredHashes(index, data[2:end], reader)
			if err != nil {
				return nil, err
			}
			hashes = append(hashes, more...)
			data = data[end:]
		}
		if len(data) > 0 {
			return nil, fmt.Errorf("%s has %d bytes behind its entries", name, len(data))
		}
	}
	return hashes, nil
}

// checkProofs makes proofs from the tiles, and verifies them against the checkpoint alone.
func checkProofs(dir string, newest *checkpoint, hashes []tlog.Hash) error {
	if newest.size == 0 {
		return nil
	}
	reader := tiles(dir, newest)
	for _, index := range []int64{0, newest.size / 2, newest.size - 1} {
		proof, err := tlog.ProveRecord(newest.size, index, reader)
		if err != nil {
			return err
		}
		leaf := hashes[tlog.StoredHashIndex(0, index)]
		if err := tlog.CheckRecord(proof, newest.size, newest.root, index, leaf); err != nil {
			return fmt.Errorf("inclusion of entry %d: %w", index, err)
		}
	}
	older := &checkpoint{size: (newest.size + 1) / 2}
	root, err := tlog.TreeHash(older.size, reader)
	if err != nil {
		return err
	}
	older.root = root
	return checkConsistency(reader, older, newest)
}

func checkConsistency(reader tlog.HashReader, older, newest *checkpoint) error {
	if older.size > newest.size {
		return fmt.Errorf("the log had %d entries and has %d: it was rolled back", older.size, newest.size)
	}
	if older.size == 0 {
		return nil
	}
	proof, err := tlog.ProveTree(newest.size, older.size, reader)
	if err != nil {
		return err
	}
	return tlog.CheckTree(proof, newest.size, newest.root, older.size, older.root)
}

// tiles reads hashes from the tiles, each verified up to the root.
func tiles(dir string, newest *checkpoint) tlog.HashReader {
	return tlog.TileHashReader(tlog.Tree{N: newest.size, Hash: newest.root}, tileReader(dir))
}

type tileReader string

func (dir tileReader) Height() int { return height }

func (dir tileReader) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	found := make([][]byte, len(wanted))
	for nth, tile := range wanted {
		data, err := os.ReadFile(filepath.Join(string(dir), path(tile)))
		if err != nil {
			return nil, err
		}
		found[nth] = data
	}
	return found, nil
}

func (dir tileReader) SaveTiles([]tlog.Tile, [][]byte) {}

// path is a tile's place in a tlog-tiles log: that of the package without the height, "entries" for "data".
func path(tile tlog.Tile) string {
	rest := strings.TrimPrefix(tile.Path(), fmt.Sprintf("tile/%d/", height))
	return "tile/" + strings.Replace(rest, "data/", "entries/", 1)
}

// readCheckpoint gives the checkpoint in a file that the log has signed.
func readCheckpoint(file string, verifier note.Verifier) (*checkpoint, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	opened, err := note.Open(data, note.VerifierList(verifier))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 4 || lines[len(lines)-1] != "" {
		return nil, errors.New("a checkpoint has three lines at least")
	}
	if lines[0] != verifier.Name() {
		return nil, fmt.Errorf("the checkpoint is of %q, the key of %q", lines[0], verifier.Name())
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return nil, fmt.Errorf("%q is no size", lines[1])
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return nil, fmt.Errorf("%q is no root", lines[2])
	}
	found := &checkpoint{size: size}
	copy(found.root[:], root)
	return found, nil
}

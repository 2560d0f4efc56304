#!/bin/sh
# Builds the example into the file that is named, from the contract and the Go sources that Debian packages (Go 1.19):
#
#     apt-get install golang-go golang-google-grpc-dev
#     make setup && examples/go/build.sh var/first-round-go
#
# Nothing is downloaded here, so there is no go.mod. Outside Debian: generate the code with the same template, and
# require google.golang.org/grpc, google.golang.org/protobuf and google.golang.org/genproto in a module of your own.
set -eu
[ $# -eq 1 ] || { echo "examples/go/build.sh OUT" >&2; exit 2; }
mkdir -p "$(dirname "$1")"
out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")"

debian=/usr/share/gocode
for needed in google.golang.org/grpc google.golang.org/genproto/googleapis/rpc github.com/golang/protobuf/protoc-gen-go; do
    [ -d "$debian/src/$needed" ] || {
        echo "$needed is not in $debian: apt-get install golang-google-grpc-dev" >&2
        exit 1
    }
done
buf=../../.venv/bin/buf
[ -x $buf ] || { echo "there is no $buf: run make setup first" >&2; exit 1; }

work=$(mktemp -d "$(dirname "$out")/first-round-go.XXXXXX")
trap 'rm -rf "$work"' EXIT
export GO111MODULE=off GOFLAGS= GOPATH="$work:$debian" GOCACHE="${GOCACHE:-$work/cache}"

# Debian's gRPC encodes messages by the first API of protobuf: its generator is that of github.com/golang/protobuf.
go build -o "$work/protoc-gen-go" github.com/golang/protobuf/protoc-gen-go
package=rgs.example/contract
cat >"$work/buf.gen.yaml" <<TEMPLATE
version: v2
managed:
  enabled: true
  disable:
    - path: google # Go has packages of these
  override:
    - file_option: go_package_prefix
      value: $package
plugins:
  - local: "$work/protoc-gen-go"
    out: "$work/src/$package"
    opt:
      - plugins=grpc
      - paths=source_relative
      - Mgoogle/protobuf/timestamp.proto=github.com/golang/protobuf/ptypes/timestamp
TEMPLATE
$buf generate ../.. --template "$work/buf.gen.yaml" --path ../../protos/rgs/v1
mkdir -p "$work/src/rgs.example/first-round"
cp main.go "$work/src/rgs.example/first-round/"
go vet rgs.example/first-round
go build -o "$out" rgs.example/first-round

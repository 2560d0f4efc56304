"""Generated from `protos/`, never edited: change the contract and run `make protos`."""

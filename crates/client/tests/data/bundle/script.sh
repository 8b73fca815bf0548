#!/bin/sh
echo "a: b"   # no YAML at all: [

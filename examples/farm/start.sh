#!/bin/sh
# Runs once, at the first start of a node.
echo "node $(hostname) is up" > /etc/motd

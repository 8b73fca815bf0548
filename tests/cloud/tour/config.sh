#!/bin/sh
echo configured

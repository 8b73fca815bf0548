#!/usr/bin/env python3
"""Checks the dependencies between the crates with cargo metadata.

Pure crates must not depend on a runtime, a database or the network, and only the binary and kiln-server may use
concrete adapters.
"""
import json
import subprocess
import sys

PURE = {"kiln-value", "kiln-yaml", "kiln-yaql", "kiln-template", "kiln-resource", "kiln-plan",
        "kiln-plan-document", "kiln-authoring", "kiln-package", "kiln-topology", "kiln-ini"}
OUTSIDE = {"tokio", "sqlx", "sea-orm", "reqwest", "hyper", "axum", "mio"}
# The allowed dependencies of each crate in the workspace.
ALLOWED = {
    "kiln-value": set(),
    "kiln-trace": set(),
    "kiln-yaml": {"kiln-value"},
    "kiln-yaql": {"kiln-value"},
    "kiln-template": {"kiln-value", "kiln-yaml", "kiln-yaql"},
    "kiln-package": set(),
    "kiln-topology": {"kiln-value", "kiln-yaml", "kiln-template", "kiln-package"},
    "kiln-resource": {"kiln-value", "kiln-yaml", "kiln-template"},
    "kiln-plan": {"kiln-value", "kiln-template", "kiln-resource", "kiln-plan-document"},
    "kiln-plan-document": {"kiln-value"},
    "kiln-authoring": {"kiln-value", "kiln-yaml", "kiln-template", "kiln-resource", "kiln-plan", "kiln-topology"},
    "kiln-store": {"kiln-trace", "kiln-value", "kiln-resource"},
    "kiln-cloud": {"kiln-trace", "kiln-value", "kiln-yaml", "kiln-resource"},
    "kiln-drivers": {"kiln-value", "kiln-yaml", "kiln-template", "kiln-resource"},
    "kiln-stack": {"kiln-value", "kiln-template", "kiln-resource", "kiln-plan", "kiln-store"},
    "kiln-view": {"kiln-value", "kiln-template", "kiln-resource", "kiln-plan", "kiln-plan-document", "kiln-store",
                  "kiln-stack"},
    "kiln-take-over": {"kiln-value", "kiln-template", "kiln-resource", "kiln-plan", "kiln-store", "kiln-stack", "kiln-view",
                       "kiln-cloud", "kiln-identity", "kiln-credentials"},
    "kiln-engine": {"kiln-trace", "kiln-value", "kiln-template", "kiln-resource", "kiln-plan", "kiln-plan-document",
                    "kiln-store", "kiln-stack"},
    "kiln-identity": {"kiln-value", "kiln-yaml", "kiln-resource", "kiln-cloud"},
    "kiln-service": {"kiln-value", "kiln-template", "kiln-topology", "kiln-resource", "kiln-plan",
                     "kiln-plan-document", "kiln-store", "kiln-stack", "kiln-view", "kiln-identity"},
    "kiln-audit": {"kiln-value", "kiln-ini", "kiln-cloud"},
    "kiln-web": {"kiln-audit", "kiln-store", "kiln-stack", "kiln-cloud", "kiln-identity"},
    "kiln-api": {"kiln-value", "kiln-yaml", "kiln-template", "kiln-resource", "kiln-plan", "kiln-plan-document",
                 "kiln-store", "kiln-stack", "kiln-view", "kiln-identity", "kiln-service", "kiln-topology", "kiln-web", "kiln-audit"},
    "kiln-cfn": {"kiln-value", "kiln-template", "kiln-authoring", "kiln-resource", "kiln-plan", "kiln-store", "kiln-stack",
                 "kiln-view", "kiln-identity", "kiln-service", "kiln-web", "kiln-audit"},
    "kiln-dashboard": {"kiln-value", "kiln-cloud", "kiln-web"},
    "kiln-plugin": {"kiln-value", "kiln-resource"},
    "kiln-client": {"kiln-value", "kiln-yaml", "kiln-template", "kiln-plan-document", "kiln-cloud"},
    "kiln-testcloud": {"kiln-cloud"},
    "kiln-ini": set(),
    "kiln-console": {"kiln-value", "kiln-yaml", "kiln-template", "kiln-plan", "kiln-authoring", "kiln-client", "kiln-plan-document"},
    "kiln-config": {"kiln-ini", "kiln-value", "kiln-template", "kiln-store", "kiln-cloud", "kiln-console"},
    "kiln-telemetry": {"kiln-trace", "kiln-value", "kiln-stack", "kiln-store", "kiln-web", "kiln-cloud", "kiln-config",
                       "kiln-console"},
    "kiln-bus": {"kiln-audit", "kiln-value", "kiln-resource", "kiln-engine", "kiln-config"},
    "kiln-webhook": {"kiln-value", "kiln-engine", "kiln-cloud", "kiln-config"},
    "kiln-lsp": {"kiln-value", "kiln-plan", "kiln-authoring", "kiln-topology", "kiln-client"},
    "kiln-credentials": {"kiln-value", "kiln-resource", "kiln-store", "kiln-cloud", "kiln-identity", "kiln-stack"},
}

metadata = json.loads(subprocess.check_output(
    ["cargo", "metadata", "--format-version", "1", "--locked"]))
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}


def needs(package_id):
    """The dependencies of a package, without dev-dependencies."""
    return [dep["pkg"] for dep in nodes[package_id]["deps"]
            if any(kind["kind"] is None for kind in dep["dep_kinds"])]


def reach(package_id, seen):
    for dep in needs(package_id):
        if dep not in seen:
            seen.add(dep)
            reach(dep, seen)
    return seen


wrong = []
for member in metadata["workspace_members"]:
    name = packages[member]["name"]
    direct = {packages[dep]["name"] for dep in needs(member)}
    if name in ALLOWED:
        crooked = {dep for dep in direct if dep.startswith("kiln-")} - ALLOWED[name]
        wrong += [f"{name} may not use {dep}" for dep in sorted(crooked)]
    if name in PURE:
        far = {packages[dep]["name"] for dep in reach(member, set())} & OUTSIDE
        wrong += [f"{name} is pure but reaches {dep}" for dep in sorted(far)]
print("\n".join(wrong) or "all dependencies are allowed")
sys.exit(bool(wrong))

//! Archives that try to leave the package or to use up time and memory.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use kiln_package::{Limits, Package};
use zip::write::SimpleFileOptions;

fn tar(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = tar::Header::new_ustar();
        // `set_path` refuses the names of interest.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_link_name("heat.yaml").unwrap();
        }
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn kind(bytes: &[u8]) -> &'static str {
    Package::open(bytes, &Limits::default()).unwrap_err().kind
}

#[test]
fn bombs_are_refused_quickly() {
    let zeros = vec![0; 64 << 20];
    let heat: (&str, &[u8]) = ("heat.yaml", b"components: {}");
    let bombs = [
        zip(&[heat, ("zeros", &zeros)]),
        gzip(&tar(&[("zeros", tar::EntryType::Regular, &zeros)])),
        gzip(&gzip(&zeros)),
    ];
    assert_eq!(kind(&bombs[0]), "too-large");
    assert_eq!(kind(&bombs[1]), "too-large");
    // What is in the outer one is small, and not an archive.
    assert_eq!(kind(&bombs[2]), "not-an-archive");
}

#[test]
fn many_members_are_refused() {
    let names: Vec<String> = (0..10_001).map(|i| format!("f{i}")).collect();
    let entries: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    assert_eq!(kind(&zip(&entries)), "too-large");
    let entries: Vec<_> = names.iter().map(|name| (name.as_str(), tar::EntryType::Regular, &b""[..])).collect();
    assert_eq!(kind(&tar(&entries)), "too-large");
}

#[test]
fn names_and_links_do_not_leave_the_package() {
    for name in ["../a", "/etc/passwd", "a/../../b", "C:\\a"] {
        assert_eq!(kind(&tar(&[(name, tar::EntryType::Regular, b"x")])), "unsafe-path", "{name}");
        assert_eq!(kind(&zip(&[(name, b"x")])), "unsafe-path", "{name}");
    }
    for link in [tar::EntryType::Symlink, tar::EntryType::Link, tar::EntryType::Fifo, tar::EntryType::Char] {
        assert_eq!(kind(&tar(&[("l", link, b"")])), "unsafe-path");
    }
    let twice = tar(&[("heat.yaml", tar::EntryType::Regular, b"a"), ("./heat.yaml", tar::EntryType::Regular, b"b")]);
    assert_eq!(kind(&twice), "duplicate-member");
}

#[test]
fn every_prefix_of_an_archive_ends_in_an_answer() {
    let whole = zip(&[("heat.yaml", b"components: {}"), ("a/b.sh", b"#!/bin/sh")]);
    let tarred = gzip(&tar(&[("heat.yaml", tar::EntryType::Regular, b"components: {}")]));
    for archive in [whole, tarred] {
        assert!(Package::open(&archive, &Limits::default()).is_ok());
        for end in 0..archive.len() {
            // Only that nothing panics: a short archive may still be readable.
            let _ = Package::open(&archive[..end], &Limits::default());
        }
    }
}

//! Archives of Go modules.

use crate::python::zip;

/// The archive of a version with a `go.mod`, a source file, and more files by their paths in the module.
pub fn archive(module: &str, version: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let go_mod = format!("module {module}\n\ngo 1.21\n");
    let source = format!("package tool\n\nconst Version = \"{version}\"\n");
    let files = [("go.mod", go_mod.as_str()), ("tool.go", source.as_str())];
    let member = |(path, text): &(&str, &str)| (format!("{module}@{version}/{path}"), text.as_bytes().to_vec());
    zip(&files.iter().chain(more).map(member).collect::<Vec<_>>())
}

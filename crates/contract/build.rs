//! Compiles `proto/` to the descriptor set and the generated types, without `protoc`.

#[path = "build/comments.rs"]
mod comments;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");

    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut compiler = protox::Compiler::new([&root])?;
    compiler.include_imports(true).include_source_info(true).open_files(&files)?;

    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    std::fs::write(out.join("docs.txt"), comments::lines(&compiler.file_descriptor_set()))?;

    // What reflection serves: the same without comments.
    let mut served = protox::Compiler::new([&root])?;
    served.include_imports(true).include_source_info(false).open_files(&files)?;
    std::fs::write(out.join("served.binpb"), served.encode_file_descriptor_set())?;

    let mut config = prost_build::Config::new();
    config
        .btree_map(["."])
        .enable_type_names()
        .include_file("generated.rs")
        .service_generator(Box::new(MethodTypes::default()));
    config.compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    Ok(())
}

/// Writes, for every method, a type that knows its name, request and response:
/// `<package>::rpc::<service>::<Method>`.
#[derive(Default)]
struct MethodTypes {
    packages: BTreeMap<String, BTreeMap<String, String>>,
}

impl prost_build::ServiceGenerator for MethodTypes {
    fn generate(&mut self, service: prost_build::Service, _: &mut String) {
        let mut text = String::new();
        for method in &service.methods {
            let full_name = format!("{}.{}.{}", service.package, service.proto_name, method.proto_name);
            let _ = write!(
                text,
                "/// `{full_name}`\n#[derive(Debug, Clone, Copy)]\npub struct {name};\n\
                 impl crate::Method for {name} {{\n\
                 type Request = {input};\ntype Response = {output};\n\
                 const FULL_NAME: &'static str = \"{full_name}\";\n}}\n",
                name = method.proto_name,
                input = nested(&method.input_type),
                output = nested(&method.output_type),
            );
        }
        self.packages.entry(service.package.clone()).or_default().insert(snake_case(&service.proto_name), text);
    }

    fn finalize_package(&mut self, package: &str, buffer: &mut String) {
        let Some(services) = self.packages.remove(package) else {
            return;
        };
        buffer.push_str("/// The methods of this package, one type each.\npub mod rpc {\n");
        for (name, text) in services {
            let _ = write!(buffer, "/// Methods of one service.\npub mod {name} {{\n{text}}}\n");
        }
        buffer.push_str("}\n");
    }
}

/// A type path of the package module, as seen from two modules further in.
fn nested(path: &str) -> String {
    if path.starts_with("()") || path.starts_with("::") { path.into() } else { format!("super::super::{path}") }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for (i, character) in name.chars().enumerate() {
        if character.is_uppercase() && i > 0 {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
    }
    snake
}

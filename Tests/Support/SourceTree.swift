/// The files of the repository.
package enum SourceTree {
  /// Three levels above this file.
  package static let root = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3)
    .joined(separator: "/")

  /// The path of a file of `contrib/`.
  package static func contrib(_ name: String) -> String { "\(root)/contrib/\(name)" }

  /// The lines of a text file, named from the repository's root.
  package static func lines(_ path: String) throws -> [String] {
    String(decoding: try readFile("\(root)/\(path)"), as: UTF8.self)
      .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  /// The files below a folder whose names end in `suffix`, named from the repository's root.
  package static func files(below folder: String, suffix: String) -> [String] {
    names(in: "\(root)/\(folder)").sorted().flatMap { name in
      let path = "\(folder)/\(name)"
      return name.hasSuffix(suffix) ? [path] : files(below: path, suffix: suffix)
    }
  }
}

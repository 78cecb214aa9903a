import TestSupport

/// The files of the repository that these tests hold against the program.
enum SourceTree {
  /// Three levels above this file.
  static let root = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/")

  /// The lines of a text file, named from the repository's root.
  static func lines(_ path: String) throws -> [String] {
    String(decoding: try readFile("\(root)/\(path)"), as: UTF8.self)
      .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }
}

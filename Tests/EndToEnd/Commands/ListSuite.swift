import TestSupport

/// A suite that adds lists to a spool of its own.
protocol ListSuite {
  var spool: TemporarySpool { get }
  /// Where the lists are.
  var directory: TemporaryDirectory { get }
}

extension ListSuite {
  func file(_ text: String, name: String = "list") throws -> String {
    let path = "\(directory.path)/\(name)"
    try writeFile(path, text)
    return path
  }

  func add(_ arguments: String...) async throws -> CommandResult {
    try await spoolrun(["add", "--spool", spool.root] + arguments)
  }

  func text(_ name: String) throws -> String {
    try spool.text("new/\(name)")
  }
}

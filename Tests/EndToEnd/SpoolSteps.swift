import Glibc
import TestSupport
import Testing

extension CommandResult {
  /// Expects this exit status, and these words in standard error and in standard output.
  @discardableResult
  func exits(
    _ expected: Int32, saying errors: String..., printing output: String = "",
    sourceLocation: SourceLocation = #_sourceLocation
  ) -> CommandResult {
    let isAsExpected =
      status == .exited(expected) && errors.allSatisfy { self.errors.contains($0) }
      && (output.isEmpty || self.output.contains(output))
    #expect(isAsExpected, "not \(expected) \(errors) \(output): \(self)", sourceLocation: sourceLocation)
    return self
  }
}

/// Plays a test again where the machine stood still in it, such as for the 4 s after which the same run looks at a
/// first mismatch again.
/// - Parameter play: returns false, without a judgement, if it did.
func replay(sourceLocation: SourceLocation = #_sourceLocation, _ play: () async throws -> Bool) async throws {
  var plays = 1
  while try await !play() {
    plays += 1
    try #require(plays < 10, "no play went without a pause", sourceLocation: sourceLocation)
  }
}

/// What many tests do with a spool.
extension TemporarySpool {
  /// Runs what is due.
  func once() async throws -> CommandResult { try await spoolrun("--once", root) }

  /// The same, and expects this exit status.
  @discardableResult
  func once(
    _ options: String..., exits status: Int32, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> CommandResult {
    let result = try await spoolrun(["--once"] + options + [root])
    #expect(result.status == .exited(status), "\(result)\n\(unfinished)", sourceLocation: sourceLocation)
    return result
  }

  /// The jobs that a run has left, for the report of a failed test.
  private var unfinished: String {
    let jobs = ["failed", "partial"].flatMap { names($0) }.filter { !$0.hasSuffix(".part") }
    return jobs.map { listing(of: $0) }.joined(separator: "\n")
  }

  /// Puts a shell script into `hooks/`.
  func install(_ hook: String, _ script: String) throws {
    if fileStatus(path("hooks")) == nil, mkdir(path("hooks"), 0o700) != 0 {
      throw TestSupportError("mkdir", path("hooks"), errno: errno)
    }
    try writeFile(path("hooks/\(hook)"), Array("#!/bin/sh\n\(script)\n".utf8))
    guard chmod(path("hooks/\(hook)"), 0o700) == 0 else { throw TestSupportError("chmod", hook, errno: errno) }
  }

  /// The lines of a file that a hook wrote in the spool; none if it did not.
  func told(_ name: String) -> [String] {
    guard let bytes = try? readFile(path(name)) else { return [] }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// The paths of the files in the spool, but for hooks and what these told, whose bytes contain one of `secrets`.
  func files(with secrets: [String], except: [String]) throws -> [String] {
    try filesBelow(root).filter { file in
      if file.hasPrefix("hooks/") || except.contains(file) { return false }
      let text = latin1(try readFile(path(file)))
      return secrets.contains { text.contains($0) }
    }
  }
}

import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker

/// What a check makes of the end of `spoolrun-entries`.
@Suite struct EntriesProgramTests {
  /// A shell in its place: the file of the list is its script, and the output's path its argument.
  private func failure(of script: String, in fixture: Fixture) async throws -> Failure? {
    let file = try ScratchFile(fixture.spool)
    try file.write(Array(script.utf8), at: 0)
    do {
      _ = try await EntriesProgram(path: "/bin/sh", stop: ChildStop()).read(file, nil, name: nil, in: fixture.spool)
      return nil
    } catch let failure as Failure {
      return failure
    }
  }

  /// The list is to blame only where the program says so.
  @Test(arguments: [(65, FailureCode.badEntries), (66, .io), (74, .io), (70, .badEntries)])
  func `a file that cannot be read is this machine's trouble`(status: Int, code: FailureCode) async throws {
    #expect(try await failure(of: "exit \(status)\n", in: Fixture())?.code == code)
  }

  /// Here the limit is less than its own.
  @Test func `the program says that its entries take too much`() async throws {
    let fixture = try Fixture()
    let list = fixture.files.path("tmp/list")
    try writeFile(list, (1...100).map { "http://h/\($0)\n" }.joined())
    let program = try productPath("spoolrun-entries")
    let failure = try await failure(of: "ulimit -f 1\nexec '\(program)' '\(list)' \"$1\"\n", in: fixture)
    #expect(failure?.code == .badEntries && failure?.reason.contains("its entries take more than") == true)
  }
}

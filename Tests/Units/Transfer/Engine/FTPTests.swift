import TestSupport
import Testing

@testable import Transfer

/// FTP answers in the same terms as HTTP.
@Suite struct FTPTests {
  private static let file = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

  @Test func aFileComesWhole() async throws {
    let server = try await FTPServer(file: Self.file)
    let outcome = await (try Driver(.init(protocols: [.ftp]))).fetch(server.url)
    #expect(outcome.isComplete && outcome.body == Self.file, "\(outcome.result.end)")
    let response = try #require(outcome.result.response)
    #expect(response.content == .whole && response.bodyLength == 100_000 && response.ending == .announced)
    #expect(try server.commands.contains("RETR f"))
    #expect(try !server.commands.contains { $0.hasPrefix("REST") })
  }

  @Test func aFileIsResumed() async throws {
    let server = try await FTPServer(file: Self.file)
    let outcome = await (try Driver(.init(protocols: [.ftp]))).fetch(server.url) { $0.rangeStart = 60_000 }
    #expect(outcome.isComplete && outcome.body == Array(Self.file[60_000...]), "\(outcome.result.end)")
    #expect(outcome.result.response?.content == .range(first: 60_000, last: 99_999, total: 100_000))
    #expect(try server.commands.contains("REST 60000"))
  }

  @Test(
    arguments: [
      // The offset is the file's size: libcurl does not ask.
      ("", 100_000, .nothingThere(size: 100_000)), ("", 100_001, .nothingThere(size: nil)),
      ("REST", 60_000, .nothingThere(size: nil)), ("PASS", 0, .refused(.login)), ("CWD", 0, .refused(.access)),
      ("RETR", 0, .refused(.noSuchFile)), ("PASS 421 Too many connections (8) from this IP", 0, .refused(.unavailable)),
      ("USER 530-Sorry.\r\n530 The maximum number of clients (3) is connected", 0, .refused(.unavailable)),
    ] as [(String, UInt64, Response.Content)])
  func refusals(command: String, offset: UInt64, expected: Response.Content) async throws {
    let server = try await FTPServer(file: Self.file, refusing: command)
    let outcome = await (try Driver(.init(protocols: [.ftp]))).fetch(server.url) {
      $0.rangeStart = offset > 0 ? offset : nil
    }
    #expect(outcome.result.response?.content == expected, "\(outcome.result.end)")
    #expect(outcome.isComplete && outcome.body.isEmpty)
  }

  /// The server closes the data connection early, and yet says that all was sent.
  @Test func aShortFileIsNotWhole() async throws {
    let server = try await FTPServer(file: Self.file, sending: 70_000)
    let outcome = await (try Driver(.init(protocols: [.ftp]))).fetch(server.url)
    #expect(outcome.failure?.code == .shortBody && outcome.body.count == 70_000)
  }
}

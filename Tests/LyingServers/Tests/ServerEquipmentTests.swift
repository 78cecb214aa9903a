import Testing
import TestSupport

@testable import LyingServer

/// The equipment itself: a test that measures wrongly proves nothing.
@Suite struct ServerEquipmentTests {
  @Test func checksum() {
    #expect(independentCRC32(Array("123456789".utf8)) == 0xCBF4_3926)
    #expect(independentCRC32([]) == 0)
    #expect(hex8(0xBEEF) == "0000BEEF")
  }

  @Test(arguments: [
    ("1970-01-01T00:00:00Z", 0), ("2000-02-29T23:59:59Z", 951_868_799), ("2026-11-21T03:00:41Z", 1_795_230_041),
    ("2026-01-01T00:00:00Z", 1_767_225_600), ("2100-03-01T00:00:00Z", 4_107_542_400),
  ])
  func time(text: String, seconds: Int) {
    #expect(secondsSinceEpoch(rfc3339: text) == seconds)
  }

  /// All versions differ in every byte, so that a splice anywhere shows.
  @Test func versionsDiffer() {
    let isDistinct =
      zip(payload, previous).allSatisfy { $0 != $1 } && zip(payload, shorter).allSatisfy { $0 != $1 }
      && zip(previous, shorter).allSatisfy { $0 != $1 }
    #expect(isDistinct)
    #expect(payload.count == n && Set(payload).count == 256)
  }

  @Test func curlAgreesWithTheServer() async throws {
    let server = try ScriptedServer { try Origin().answer($0, $1) }
    let directory = try TemporaryDirectory()
    let file = "\(directory.path)/data"
    try await runTool(["/usr/bin/curl", "-sS", "-f", "-r", "4000-", "-o", file, server.url("/x")])
    #expect(digest(try readFile(file)) == digest(Array(payload[4000...])))
    #expect(server.requests.map(ask) == ["range 4000"])
    #expect(server.problems == [])
  }

  @Test func processes() async throws {
    let result = try await run(["/bin/sh", "-c", "echo out; echo err >&2; pwd; exit 3"], directory: "/usr")
    #expect(result.status == .exited(3))
    #expect(result.output == "out\n/usr\n" && result.errors == "err\n")
    let sleeper = try RunningCommand(["/bin/sleep", "60"])
    sleeper.send(signal: 15)
    #expect(try await sleeper.result().status == .killed(signal: 15))
    await #expect(throws: TestSupportError.self) {
      try await run(["/bin/sleep", "60"], timeout: .milliseconds(50))
    }
  }

  /// Also what cannot be named in UTF-8 goes with its directory.
  @Test func directoriesGo() async throws {
    let path = try await {
      let directory = try TemporaryDirectory()
      try await runTool(
        ["/bin/sh", "-c", "mkdir -p a/b && : > a/b/c && : > \"$(printf 'a/\\377')\""], directory: directory.path)
      #expect(names(in: "\(directory.path)/a").count == 2)
      return directory.path
    }()
    #expect(fileStatus(path) == nil)
  }
}

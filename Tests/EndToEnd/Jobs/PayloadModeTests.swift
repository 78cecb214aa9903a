import Glibc
import TestSupport
import Testing

/// `mode:`, the permissions of a payload and of the directories that are made for it.
@Suite struct PayloadModeTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws { (server, spool) = (try simpleServer(), try TemporarySpool()) }

  @Test func `a job says who may read its payload, and enter its directories`() async throws {
    try #require(mkdir(spool.path("files/there"), 0o700) == 0)
    try spool.drop("a", "url: \(server.url("/a"))\noutput: made/deep/a\nmode: 644\n")
    try spool.drop("b", "url: \(server.url("/b"))\noutput: there/b\nmode: 0775\n")
    try spool.drop("c", "url: \(server.url("/c"))\noutput: own/c\n")
    try await spool.once(exits: 0)
    #expect(permissions(spool.path("files/made/deep/a")) == 0o644)
    #expect(permissions(spool.path("files/made/deep")) == 0o755 && permissions(spool.path("files/made")) == 0o755)
    #expect(permissions(spool.path("files/there/b")) == 0o775)
    #expect(permissions(spool.path("files/there")) == 0o700, "it was there before")
    #expect(permissions(spool.path("files/own/c")) == 0o600 && permissions(spool.path("files/own")) == 0o700)
    #expect(permissions(spool.path("done/a")) == 0o600, "the receipt is nobody else's")
  }

  /// Else a group that may read `files` could not read what is below a new directory.
  @Test func `new directories hand on their group`() async throws {
    try #require(chmod(spool.path("files"), 0o2750) == 0)
    try spool.drop("a", "url: \(server.url("/a"))\noutput: made/deep/a\nmode: 640\n")
    try await spool.once(exits: 0)
    #expect(permissions(spool.path("files/made")) == 0o2750 && permissions(spool.path("files/made/deep")) == 0o2750)
    #expect(permissions(spool.path("files/made/deep/a")) == 0o640)
  }

  @Test func `defaults have it for all, and a job for itself`() async throws {
    try spool.write("defaults", "mode: 640\n")
    try spool.drop("a", "url: \(server.url("/a"))\noutput: d/a\n")
    try spool.drop("b", "url: \(server.url("/b"))\nmode: 600\n")
    try await spool.once(exits: 0)
    #expect(permissions(spool.path("files/d/a")) == 0o640 && permissions(spool.path("files/d")) == 0o750)
    #expect(permissions(spool.path("files/b")) == 0o600)
  }

  /// The payload is then a copy.
  @Test(.enabled("needs /dev/shm to be a file system of its own") { try await Need.otherFileSystem.isMet() })
  func `on another file system as well`() async throws {
    let root = try TemporaryDirectory(in: TemporaryDirectory.otherFileSystem)
    try spool.drop("a", "url: \(server.url("/a"))\noutput: d/a\nmode: 664\n")
    try await spoolrun("--once", "--directory", root.path, spool.root).exits(0)
    #expect(permissions("\(root.path)/d/a") == 0o664 && permissions("\(root.path)/d") == 0o775)
  }

  @Test(arguments: ["644", "0755", "600", "775"])
  func `these are permissions of a payload`(text: String) async throws {
    try await spoolrun("add", "--spool", spool.root, "--mode", text, "https://h/a").exits(0)
  }

  /// The owner may always read and write; nobody else writes, and there is no set-user-ID.
  @Test func `these are not`() async throws {
    let modes = ["4755", "666", "777", "244", "044", "444", "64", "06444", "u+r", "688", "-644"]
    for mode in modes {
      try await spoolrun("add", "--spool", spool.root, "--mode=\(mode)", "https://h/a")
        .exits(64, saying: "mode: must be permissions in octal")
      try spool.drop("a \(mode)", "url: https://h/a\nmode: \(mode)\n")
    }
    try await spool.once(exits: 1)
    for mode in modes { #expect(try spool.lastFailure("failed/a \(mode)")["code"] == "malformed", "\(mode)") }
  }

  private func permissions(_ path: String) -> mode_t? { fileStatus(path).map { $0.st_mode & 0o7777 } }
}

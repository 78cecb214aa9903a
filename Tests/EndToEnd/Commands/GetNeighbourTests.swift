import Glibc
import TestSupport
import Testing

/// Several commands `spoolrun get` in a spool that is not beside their files.
@Suite struct GetNeighbourTests: GetScene {
  let home: TemporaryDirectory

  init() throws { home = try Self.makeHome() }

  /// From the drop of its job to the start of its worker, only a lock tells of a command.
  @Test func `a command that finds its file cancels the job of another one only if that is gone`() async throws {
    let gate = try Gate()
    let asked = Counter()
    let server = try ScriptedServer { request, reply in
      if request.value("user-agent") == "again" { _ = asked.next() }
      if request.value("user-agent") == "again", !gate.isOpen { return try reply.respond("404 Not Found", body: []) }
      try reply.respond("200 OK", body: [1])
    }
    let url = server.url("/a")
    let again = ["--overwrite", "--user-agent", "again", url]
    let left = "\(personal)/failed"
    try await get(url).exits(0)
    // From now on there can be no spool beside it.
    try writeFile(spool, [1])
    try await start(again).result().exits(1)
    #expect(names(in: left).count == 1)
    try await get(url).exits(0)
    #expect(names(in: left) == [])

    // Without that lock for some seconds, a command goes on.
    try await replay {
      try await start(again).result().exits(1)
      let drops = try opened("\(personal)/tmp")
      try #require(flock(drops, LOCK_EX | LOCK_NB) == 0)
      let before = asked.current
      let other = try start(again)
      defer { other.send(signal: SIGKILL) }
      let look = try opened(personal)
      defer { close(look) }
      try await waitUntil("it shows that it is there") {
        if flock(look, LOCK_EX | LOCK_NB) != 0 { return true }
        flock(look, LOCK_UN)
        return false
      }
      other.send(signal: SIGSTOP)
      close(drops)
      if asked.current > before { return false }
      try await get(url).exits(0, saying: "a: is there already")
      #expect(names(in: left).count == 1)
      gate.open()
      other.send(signal: SIGCONT)
      let result = try await other.result()
      #expect(result.status == .exited(0) && names(in: "\(personal)/done").count == 1, "\(result)")
      return true
    }
  }

  private func opened(_ directory: String) throws -> Int32 {
    let file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    try #require(file >= 0)
    return file
  }
}

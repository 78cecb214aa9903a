import Glibc
import TestSupport
import Testing

/// What commands tell a person at a terminal, and nobody else.
@Suite(.enabled("needs script(1)") { try await Need.terminal.isMet() })
struct SayingTests {
  private static let job = Array("http://127.0.0.1:9/x\n".utf8)

  /// Runs a command off a terminal and, in a copy of the spool, on one.
  private func say(_ command: String, in spool: TemporarySpool) async throws -> (silent: CommandResult, said: String) {
    let copy = "\(spool.root)-copy"
    try await runTool(["/bin/cp", "-a", spool.root, copy])
    defer { withExtendedLifetime(spool) {} }
    let program = try productPath("spoolrun")
    let silent = try await run(["/bin/sh", "-c", "\(program) \(command.replacing("SPOOL", with: spool.root))"])
    let said = try await runInTerminal("\(program) \(command.replacing("SPOOL", with: copy))").output
    try await runTool(["/bin/rm", "-r", copy])
    return (silent, said)
  }

  @Test(arguments: [
    ("retry --failed --spool SPOOL", "3 jobs are tried again"), ("hold --all --spool SPOOL", "1 job paused, in hold/"),
    ("hold n --spool SPOOL", "1 job paused"), ("release --all --spool SPOOL", "nothing to release"),
    ("cancel -y --failed --spool SPOOL", "3 jobs removed"), ("prioritise n --spool SPOOL", "1 job starts before all"),
    ("init SPOOL", "is a spool already; nothing is changed"), ("verify --spool SPOOL", "0 sound, 1 not"),
    ("subscribe http://127.0.0.1:9/f.rss --spool SPOOL", "it takes the newest (--first all: all)"),
    ("report -o SPOOL/r.html SPOOL", "r.html is written"), ("url n http://h/y --spool SPOOL", "has the new URL"),
  ])
  func `what was done is said on a terminal, and nowhere else`(command: String, words: String) async throws {
    let spool = try TemporarySpool()
    for name in ["failed/a", "failed/b", "failed/c", "new/n"] { try spool.write(name, Self.job) }
    try writeFile(
      spool.path("done/d"),
      Self.job
        + Array(
          """
          verified: 2026-11-21T03:00:00Z size=1 crc32=00000000
          done: 2026-11-21T03:00:00Z attempts=1 output=d bytes-fetched=1 seconds=1

          """.utf8))
    let (silent, said) = try await say(command, in: spool)
    #expect(said.contains(words), "\(said)")
    #expect(!silent.output.contains(words) && silent.errors == "", "\(silent)")
  }

  @Test func `cancel says which job had a name that begins so`() async throws {
    let spool = try TemporarySpool()
    try spool.write("new/far", Self.job)
    let (silent, said) = try await say("cancel fa --spool SPOOL", in: spool)
    #expect(said.contains("new/far removed") && silent.status == .exited(0) && silent.errors == "", "\(said)")
  }

  @Test func `commands in advice are for a shell`() async throws {
    let directory = try TemporaryDirectory()
    let missing = try await spoolrun("status", "a b", directory: directory.path)
    let command = try #require(missing.errors.split(separator: "`").first { $0.hasPrefix("spoolrun init") })
    let words = "\(try productPath("spoolrun"))\(command.dropFirst(8))"
    let made = try await run(["/bin/sh", "-c", words], directory: directory.path)
    #expect(made.status == .exited(0) && names(in: directory.path) == ["a b"], "\(missing) \(made)")
  }

  @Test func `who drops a job hears that no worker runs, and how to start one`() async throws {
    let spool = try TemporarySpool()
    let program = try productPath("spoolrun")
    let add = "\(program) add --spool \(spool.root) http://127.0.0.1:9/x"
    #expect(try await run(["/bin/sh", "-c", add]).errors == "")
    let words = "no worker runs: `spoolrun --once \(spool.root)` runs what is due"
    #expect(try await runInTerminal(add).output.contains(words))
    let wait = "\(program) wait --timeout 2s --spool \(spool.root) x"
    #expect(try await runInTerminal(wait).output.contains(words))
    #expect(try await runInTerminal("\(program) retry --all --spool \(spool.root)").output.contains("nothing to retry"))
    let worker = try startSpoolrun([spool.root])
    try await waitUntil("it has its file") { !spool.names("workers").isEmpty }
    let quiet = try await runInTerminal(add).output
    #expect(!quiet.contains("no worker"), "\(quiet)")
    try await worker.stop()
  }
}

@Suite struct ManyPresentTests: GetScene {
  let home: TemporaryDirectory

  init() throws { home = try Self.makeHome() }

  @Test func `files that are there already are counted in one line`() async throws {
    let server = try simpleServer()
    let urls = (1...30).map { server.url("/f\($0)") }
    try await start(["-q"] + urls).result().exits(0)
    let again = try await start(urls).result()
    #expect(again.errors == "spoolrun: 30 files are there already, and are what their receipts say; -v names them\n")
    #expect(try await start(["-v"] + urls).result().errors.contains("f7: is there already"))
    let quiet = try await start(["-q"] + urls).result()
    #expect(quiet.status == .exited(0) && quiet.errors == "" && server.requests.count == 30, "\(quiet)")
  }
}

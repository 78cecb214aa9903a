import Glibc
import TestSupport
import Testing

/// Bytes that are not UTF-8 in arguments and in the environment.
@Suite struct UnreadableTextTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  private func shell(_ line: String) async throws -> CommandResult {
    let more = [
      "SPOOLRUN_SPOOL": spool.root, "spoolrun": try productPath("spoolrun"), "XDG_STATE_HOME": spool.path("tmp"),
    ]
    return try await run(
      ["/bin/bash", "-c", line], environment: testEnvironment.merging(more) { $1 }, directory: spool.path("files"))
  }

  /// Otherwise another file, directory, spool or resource would be meant.
  @Test(arguments: [
    #"init $'t\xe9'"#, #"add $'http://h/caf\xe9'"#, #"add -o $'a\xe9' http://h/a"#,
    #"add --header=$'X: \xe9' http://h/a"#,
    #"get -o $'d\xff/' http://127.0.0.1:9/a"#, #"report -o $'r\xff'"#, #"status --textfile $'t\xff'"#,
    #"status --spool $'s\xff'"#, #"run --once -d $'out\xff'"#, #"--once $'s\xff'"#, #"url a $'http://h/\xff'"#,
  ])
  func `are refused where text is wanted`(line: String) async throws {
    let result = try await shell("$spoolrun \(line)").exits(64, saying: "not UTF-8 text")
    // But not what may be a password.
    #expect(result.errors.contains(line.contains("--header") ? "one of the arguments" : "\\x"), "it says which")
    #expect(names(in: spool.path("files"), isHiddenToo: true) == [] && spool.names("new") == [])
  }

  @Test func `are refused in the environment`() async throws {
    let named = try await shell(#"SPOOLRUN_SPOOL=$'s\xff' $spoolrun status"#)
    #expect(named.status == .exited(64) && named.errors.hasPrefix("spoolrun: SPOOLRUN_SPOOL: not UTF-8"), "\(named)")
    let state = try await shell(#"XDG_STATE_HOME=$PWD/$'s\xff' $spoolrun get http://127.0.0.1:9/a"#)
    #expect(state.status == .exited(64) && state.errors.hasPrefix("spoolrun: XDG_STATE_HOME: not"), "\(state)")
    #expect(names(in: spool.path("files"), isHiddenToo: true) == [])
  }

  @Test func `are the names of jobs and lists`() async throws {
    let result = try await shell(
      #"""
      set -e
      $spoolrun add --name $'a\xff' http://h/a
      $spoolrun --spool "$SPOOLRUN_SPOOL" hold $'a\xff'
      $spoolrun url $'a\xff' http://h/b
      $spoolrun status $'a\xff'
      $spoolrun release -- $'a\xff'
      $spoolrun cancel new/$'a\xff'
      echo http://h/b > ../tmp/$'l\xff'
      $spoolrun add --from ../tmp/$'l\xff'
      """#)
    #expect(result.status == .exited(0), "\(result)")
    #expect(spool.names("new") == ["b"] && spool.names("hold") == [])
  }
}

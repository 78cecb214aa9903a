import Glibc
import TestSupport
import Testing

/// Files that somebody dropped under names to which no ending can be added.
@Suite struct LongNameTests {
  @Test func `each is shown as one failure, and hides no other job`() async throws {
    let spool = try TemporarySpool()
    // Of other letters, because records share the first bytes of names.
    let names = zip("abcdef", [181, 248, 249, 250, 251, 255]).map { String(repeating: $0, count: $1) }
    for name in names {
      for place in ["new/\(name)", "hold/\(name)"] { try spool.write(place, "http://h/x\n") }
    }
    try spool.write("failed/x", "http://h/x\n")
    let server = try simpleServer()
    try spool.drop("y", "\(server.url("/y"))\n")
    _ = try await spoolrun("--once", spool.root)
    #expect(spool.names("done") == ["y"])
    for arguments in [[], ["--json"], ["--metrics"], ["--all"]] {
      let result = try await spoolrun(["status", "--spool", spool.root] + arguments).exits(0)
      if arguments.isEmpty { #expect(result.output.contains("failed/: 7 failed"), "\(result.output)") }
    }
    for arguments in [["report", "-o", "/dev/null"], ["verify"], ["hold", "--all"], ["clean", "--dry-run"]] {
      try await spoolrun(arguments + (arguments[0] == "clean" ? [spool.root] : ["--spool", spool.root])).exits(0)
    }
    for gesture in ["retry", "cancel"] {
      try await spoolrun(gesture, "--failed", "--spool", spool.root).exits(0)
      guard gesture == "retry" else { continue }
      #expect(spool.places(of: "x") == ["new/x"] && spool.names("failed").count == 2 * names.count)
    }
    #expect(spool.names("failed") == [])
  }
}

import Glibc
import TestSupport
import Testing

/// A file that somebody dropped under a name to which no ending can be added.
@Suite struct LongNameTests {
  @Test(arguments: [181, 248, 249, 250, 251, 255])
  func `it is shown as one failure, and hides no other job`(length: Int) async throws {
    let spool = try TemporarySpool()
    let name = String(repeating: "n", count: length)
    for place in ["new/\(name)", "hold/\(name)"] { try spool.write(place, "http://h/x\n") }
    try spool.write("failed/x", "http://h/x\n")
    let server = try simpleServer()
    try spool.drop("y", "\(server.url("/y"))\n")
    _ = try await spoolrun("--once", spool.root)
    #expect(spool.names("done") == ["y"])
    for arguments in [[], ["--json"], ["--metrics"], ["--all"]] {
      let result = try await spoolrun(["status", "--spool", spool.root] + arguments).exits(0)
      if arguments.isEmpty { #expect(result.output.contains("failed/: 2 failed"), "\(result.output)") }
    }
    for arguments in [["report", "-o", "/dev/null"], ["verify"], ["hold", "--all"], ["clean", "--dry-run"]] {
      try await spoolrun(arguments + (arguments[0] == "clean" ? [spool.root] : ["--spool", spool.root])).exits(0)
    }
    for gesture in ["retry", "cancel"] {
      try await spoolrun(gesture, "--failed", "--spool", spool.root).exits(0)
      if gesture == "retry" { #expect(spool.places(of: "x") == ["new/x"] && spool.names("failed").count == 2) }
    }
    #expect(spool.names("failed") == [])
  }
}

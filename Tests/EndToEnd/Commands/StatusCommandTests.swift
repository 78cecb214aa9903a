import Foundation
import Glibc
import Spool
import TestSupport
import Testing

/// The command itself, as scripts call it.
@Suite struct StatusCommandTests {
  private let directory: TemporarySpool

  init() throws { directory = try TemporarySpool() }

  private func status(_ options: String...) async throws -> CommandResult {
    try await spoolrun(["status"] + options + [directory.root])
  }

  private func write(_ path: String, _ text: String) throws { try writeFile(directory.path(path), text) }

  private func object(_ text: String) throws -> [String: Any] {
    try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  private func fill() throws {
    let failure =
      "failed: 2026-11-21T03:00:41Z attempt=1 class=permanent code=http-404 at=0 "
      + "reason=\"h answered 404: \\\"gone\\\"\"\n"
    try write("failed/gone \u{1}\"x\"", "http://h/x\n" + failure)
    try write("partial/busy", "url: http://h/x\nsize: 10\n" + failure.replacing("permanent", with: "temporary"))
    try setModificationTime(directory.path("partial/busy"), secondsFromNow: 1000)
    try write("partial/busy.part", "1234")
    for name in ["w1", "w2", "w3"] { try write("new/\(name)", "http://h/x\n") }
    try write("done/d", "http://h/x\n")
  }

  @Test func `json is one object with the documented members`() async throws {
    try fill()
    let result = try await status("--json")
    #expect(result.status == .exited(0) && result.errors.isEmpty)
    #expect(result.output.filter { $0 == "\n" }.count == 1)
    let object = try object(result.output)
    let members: Set = [
      "format", "spool", "time", "jobs", "bytes", "list", "omitted", "recent", "orders", "workers", "servers",
      "unproven",
      "unreadable",
    ]
    #expect(Set(object.keys) == members)
    #expect(object["format"] as? Int == 1)
    #expect(
      object["jobs"] as? [String: Int] == [
        "running": 0, "failed": 1, "retrying": 1, "interrupted": 0, "paused": 0, "waiting": 3, "done": 1,
      ])
    let bytes = try #require(object["bytes"] as? [String: Any])
    #expect(
      bytes["stored"] as? Int == 4 && bytes["total"] as? Int == 10 && bytes["rate"] is NSNull && bytes["left"] is NSNull
    )
    let list = try #require(object["list"] as? [[String: Any]])
    #expect(list.map { $0["state"] as? String } == ["failed", "retrying", "waiting", "waiting", "waiting"])
    for job in list {
      #expect(
        Set(job.keys) == [
          "name", "state", "bytes", "total", "rate", "left", "attempts", "attempt-limit", "next", "worker",
          "priority", "waits", "delivery", "error",
        ])
    }
    #expect(list[0]["name"] as? String == "gone \\x01\"x\"")
    #expect((list[0]["error"] as? [String: Any])?["reason"] as? String == "h answered 404: \"gone\"")
    #expect(list[1]["bytes"] as? Int == 4 && list[1]["attempts"] as? Int == 1 && list[1]["attempt-limit"] as? Int == 12)
    #expect((list[1]["next"] as? String).flatMap { Timestamp($0) } != nil)
    #expect((object["omitted"] as? [String: Int])?.values.allSatisfy { $0 == 0 } == true)
  }

  @Test func `into a pipe goes a plain table, with names cut nowhere`() async throws {
    try fill()
    let long = String(repeating: "n", count: 170)
    try write("failed/\(long)", "http://h/x\nfailed: 2026-11-21T03:00:41Z attempt=1 code=cut at=0 reason=x\n")
    let result = try await status().exits(0)
    #expect(result.output.hasPrefix("2 failed, 1 retrying, 3 waiting, 1 done\n4B of 10B (40%)\n"))
    #expect(result.output.contains(long))
    #expect(result.output.utf8.allSatisfy { $0 == 0x0A || $0 >= 0x20 })
  }

  @Test func `ten thousand jobs are counted`() async throws {
    // Not by this process: the other tests would wait for the thread.
    for state in ["new", "done"] {
      try await runTool(["/bin/sh", "-c", "seq -f job-%.0f 10000 | xargs touch"], directory: directory.path(state))
    }
    let table = try await status()
    #expect(table.output.hasPrefix("10000 waiting, 10000 done\n"))
    #expect(table.output.hasSuffix("  … and 9990 more\n"))
    let object = try object(try await status("--json").output)
    #expect((object["list"] as? [Any])?.count == 1000)
    #expect((object["omitted"] as? [String: Int])?["waiting"] == 9000)
    #expect(try await status("--all").output.split(separator: "\n").count > 10_000)
  }

  @Test func `watching into a file goes on until a signal, one picture after the other`() async throws {
    try fill()
    let pictures = directory.path("tmp/pictures")
    try writeFile(pictures, [])
    let command = try RunningCommand([
      "/bin/sh", "-c", #"exec "$0" status --watch --json "$1" >"$2""#, productPath("spoolrun"), directory.root,
      pictures,
    ])
    try await waitUntil("two pictures") { try readFile(pictures).count { $0 == 0x0A } >= 2 }
    try await command.stop(SIGINT).exits(0)
    let lines = try readText(pictures).split(separator: "\n")
    for line in lines { #expect(try object(String(line))["format"] as? Int == 1) }
  }

  @Test func `it works while jobs come and go`() async throws {
    let root = directory.root
    let mover = Task.detached {
      var turn = 0
      while !Task.isCancelled {
        turn += 1
        for (from, to) in [("new", "partial"), ("partial", "failed"), ("failed", "hold"), ("hold", "new")] {
          rename("\(root)/\(from)/job-\(turn % 50)", "\(root)/\(to)/job-\(turn % 50)")
        }
        if turn % 50 == 0 { await Task.yield() }
      }
    }
    defer { mover.cancel() }
    for number in 0..<50 {
      try write("new/job-\(number)", "http://h/x\nfailed: 2026-11-21T03:00:41Z attempt=1 code=cut at=0 reason=x\n")
    }
    for _ in 1...20 { try await status("--json").exits(0) }
  }
}

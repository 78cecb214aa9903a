import Glibc
import TestSupport
import Testing

/// `status NAME`.
@Suite struct JobStoryTests {
  private let directory: TemporarySpool

  init() throws { directory = try TemporarySpool() }

  private func write(_ path: String, _ text: String) throws { try writeFile(directory.path(path), Array(text.utf8)) }

  private static let failed =
    "failed: 2026-11-21T03:00:41Z attempt=1 class=permanent code=http-404 at=0 reason=\"h answered 404\"\n"

  @Test func `each line of a journal in plain words`() async throws {
    try write(
      "hold/a",
      """
      http://user:s3cret@h/x?token=s3cret
      header: X-Token: s3cret
      output: d/x
      started: 2026-11-21T03:00:00Z attempt=1 worker=h.1.0000002a boot=b mirror=1 url=http://h/x
      response: mirror=1 at=0 part=7 size=4194304 etag="\\"1\\""
      checkpoint: 1048576 crc32=00000000
      checkpoint: 2097152 crc32=00000000
      interrupted: 2026-11-21T03:00:20Z attempt=1 at=2097152 crc32=00000000 fetched=2097152 reason="it was moved away"
      failed: 2026-11-21T03:00:41Z attempt=2 code=cut at=9 retry=2026-11-21T03:05:00Z reason="h cut \\x1b[2J"

      """)
    try write("partial/a.part", String(repeating: "x", count: 2048))
    let result = try await spoolrun("status", directory.root, "a")
    #expect(
      result.output == """
        a: paused

          url     http://h/x
          output  d/x
          data    2.00K in partial/a.part
          file    hold/a

          2026-11-21T03:00:00Z  attempt 1: http://h/x, by h.1.0000002a
                                the server has 4.00M
                                2.00M on disk
          2026-11-21T03:00:20Z  interrupted at 2.00M: it was moved away
          2026-11-21T03:00:41Z  cut: h cut \\x1b[2J; next attempt at 2026-11-21T03:05:00Z

          `spoolrun release a` lets it go on.

        """)
    #expect(result.status == .exited(0) && result.errors.isEmpty)
  }

  @Test func `jobs of one name, and jobs in a directory`() async throws {
    try write("new/a", "http://h/x\n")
    try write("failed/a", "http://h/x\n" + Self.failed)
    let both = try await spoolrun("status", "--spool", directory.root, "a").output
    #expect(both.contains("a: waits for a worker\n") && both.contains("\n\na: given up\n"))
    let one = try await spoolrun("status", "--spool", directory.root, "failed/a").output
    #expect(one.hasPrefix("a: given up\n") && one.contains("http-404: h answered 404; given up\n"))
    #expect(one.hasSuffix("`spoolrun retry a` tries it again, `spoolrun cancel a` removes it.\n"))
    let path = try await spoolrun(
      "status", "\(directory.path("failed/a"))", environment: ["SPOOLRUN_SPOOL": directory.root])
    #expect(path.output == one, "the path of a file, in the default spool")
  }

  @Test func `what is no job`() async throws {
    try write("done/a", "http://h/x\n")
    let missing = try await spoolrun("status", directory.root, "nope\u{1b}", "a")
    #expect(missing.status == .exited(1) && missing.errors == "spoolrun: nope\\x1b: no such job\n")
    #expect(missing.output.hasPrefix("a: done\n"), "the others are told of")
    let mixed = try await spoolrun("status", "--json", directory.root, "a")
    #expect(mixed.status == .exited(64))
    let spool = try await spoolrun("status", "nope", directory: directory.root)
    #expect(spool.status == .exited(66) && spool.errors.contains("nope: no spool there"))
    try write("failed/not a job", "\u{1}\u{2}")
    #expect(try await spoolrun("status", directory.root, "failed/not a job").output.hasPrefix("not a job: "))
  }
}

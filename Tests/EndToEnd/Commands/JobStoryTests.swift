import Glibc
import TestSupport
import Testing

/// `status NAME`.
@Suite struct JobStoryTests {
  private let directory: TemporarySpool

  init() throws { directory = try TemporarySpool() }

  private func write(_ path: String, _ text: String) throws { try writeFile(directory.path(path), text) }

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

          `spoolrun release --spool \(directory.root) a` lets it go on.

        """)
    #expect(result.status == .exited(0) && result.errors.isEmpty)
  }

  @Test func `explain tells of codes and of jobs`() async throws {
    try write("failed/a", "http://h/x\n" + Self.failed)
    let job = try await spoolrun("explain", "--spool", directory.root, "a")
    #expect(job.output == (try await spoolrun("status", "--spool", directory.root, "a").output), "\(job)")
    #expect(job.output.contains("\n  The file is not there: look for its new place.\n"), "\(job)")
    let codes = try await spoolrun("explain", "http-404", "disk-full", directory: "/")
    #expect(codes.status == .exited(0) && codes.errors.isEmpty, "a code needs no spool: \(codes)")
    for word in ["http-404: The server", "Permanent: ", "disk-full: No disk", "No attempt is counted"] {
      #expect(codes.output.contains(word), "\(word): \(codes)")
    }
    let all = try await spoolrun("explain", directory: "/")
    #expect(all.output.contains("\nmismatch-sha256 ") && all.output.split(separator: "\n").count > 40, "\(all)")
    let none = try await spoolrun("explain", "--spool", directory.root, "http-404", "nosuch")
    #expect(none.exitStatus == 1 && none.errors.contains("nosuch: no such job") && none.output != "", "\(none)")
  }

  @Test func `jobs of one name, and jobs in a directory`() async throws {
    try write("new/a", "http://h/x\n")
    try write("failed/a", "http://h/x\n" + Self.failed)
    let both = try await spoolrun("status", "--spool", directory.root, "a").output
    #expect(both.contains("a: waits for a worker\n") && both.contains("\n\na: given up\n"))
    let one = try await spoolrun("status", "--spool", directory.root, "failed/a").output
    #expect(one.hasPrefix("a: given up\n") && one.contains("http-404: h answered 404; given up\n"))
    let words = "--spool \(directory.root) a"
    #expect(one.hasSuffix("`spoolrun retry \(words)` tries it again, `spoolrun cancel \(words)` removes it.\n"))
    let path = try await spoolrun(
      "status", "\(directory.path("failed/a"))", environment: ["SPOOLRUN_SPOOL": directory.root])
    #expect(path.output == one, "the path of a file, in the default spool")
  }

  @Test func `a beginning counts only if one job has it`() async throws {
    for name in ["ab1", "ab2", "c1"] { try write("new/\(name)", "http://h/x\n") }
    for command in ["status", "explain"] {
      let two = try await spoolrun(command, "--spool", directory.root, "ab", "c")
        .exits(1, saying: "ab: several jobs begin so: ab1, ab2")
      #expect(two.output.hasPrefix("c1: waits") && !two.errors.contains("no such job"), "\(two)")
      let all = try await spoolrun(command, "--spool", directory.root, "ab*")
      #expect(all.status == .exited(0) && all.output.contains("ab1: ") && all.output.contains("ab2: "), "\(all)")
    }
  }

  /// Names are from strangers, and people copy what a program tells them to give.
  @Test func `a command that is shown means the job, whatever its name`() async throws {
    try write("failed/x; touch pwned #", "http://h/x\n" + Self.failed)
    let shown = try await spoolrun("status", directory.root, "x; touch pwned #").output
    let command = try #require(shown.split(separator: "`").first { $0.hasPrefix("spoolrun retry") })
    let tool = "spoolrun() { '\(try productPath("spoolrun"))' \"$@\"; }"
    let result = try await run(["/bin/bash", "-c", "\(tool); \(command)"], directory: directory.root)
    #expect(result.status == .exited(0) && directory.names("new") == ["x; touch pwned #"], "\(result)")
    #expect(fileStatus(directory.path("pwned")) == nil)
  }

  @Test func `an entry that is no job has its reason in a record`() async throws {
    try #require(mkdir(directory.path("failed/entry"), 0o700) == 0)
    try write(
      "failed/entry.record",
      "failed: 2026-11-21T03:00:41Z class=permanent code=malformed reason=\"not a regular file\"\n")
    for name in ["entry", "failed/entry"] {
      let story = try await spoolrun("status", "--spool", directory.root, name)
      #expect(story.output.contains("malformed: not a regular file"), "\(story)")
      #expect(story.output.hasSuffix("`spoolrun cancel --spool \(directory.root) entry` removes it.\n"), "\(story)")
    }
    try await spoolrun("report", "--spool", directory.root, "-o", directory.path("tmp/page")).exits(0)
    let html = try readText(directory.path("tmp/page"))
    #expect(html.contains("not a regular file") && !html.contains("entry.record"), "\(html)")
  }

  @Test func `what is no job`() async throws {
    try write("done/a", "http://h/x\n")
    let missing = try await spoolrun("status", directory.root, "nope\u{1b}", "a")
    #expect(missing.status == .exited(1) && missing.errors.hasPrefix("spoolrun: nope\\x1b: no such job in "))
    #expect(missing.output.hasPrefix("a: done\n"), "the others are told of")
    try await spoolrun("status", "--json", directory.root, "a").exits(64)
    try await spoolrun("status", "nope", directory: directory.root).exits(66, saying: "nope: no spool there")
    try write("failed/not a job", "\u{1}\u{2}")
    #expect(try await spoolrun("status", directory.root, "failed/not a job").output.hasPrefix("not a job: "))
  }
}

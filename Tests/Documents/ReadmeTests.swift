import Glibc
import TestSupport
import Testing

/// Runs README's examples in the order in which they stand there, against a server of our own.
@Suite(.serialized) struct ReadmeTests {
  @Test(
    .timeLimit(.minutes(30)),
    .enabled("needs python3 and scp") { try await Need.areMet(.program("python3"), .scp) })
  func `the examples run, in order`() async throws {
    let site = try Site()
    let readme = try Readme()
    let cron = try #require(readme.blocks.first { $0.language == "crontab" })
    for block in readme.blocks {
      switch block.language {
      case "console": try await runConsole(block, on: site)
      case "sh":
        // The one that doesn't end has a test of its own.
        if block.text.contains("inotifywait") { continue }
        try await expectSuccess(["/bin/sh", "-eu", "-c", block.text], block, on: site)
      case "python": try await expectSuccess(["/usr/bin/env", "python3", "-c", block.text], block, on: site)
      case "crontab": continue
      default: Issue.record("README.md:\(block.line): no test knows how to run a block of `\(block.language)`")
      }
      // The first examples need no spool.
      if fileStatus(site.spool) != nil { try await runCron(cron, on: site) }
    }

    #expect(site.files("done").isSuperset(of: ["rfc9110", "survey", "notes", "photos"]))
    for output in ["rfc9110.txt", "sets/2026/survey.tar", "notes.pdf", "photos.zip", "papers/thesis.pdf"] {
      #expect(try readFile("\(site.spool)/files/\(output)") == Site.payload, "\(output)")
    }
    for output in ["data.tar", "sums/survey.tar"] {
      #expect(try readFile("\(site.directory.path)/\(output)") == Site.payload, "\(output)")
    }
    #expect(site.files("partial").contains("busy"))
    #expect(!site.files("failed").contains("gone"))
    #expect(!site.files("new").contains("gone"))
    #expect(site.server.requests(for: "/survey.tar").map { $0.value("Authorization") } == [nil, "Bearer 5b1f0c"])
    #expect(site.server.problems == [])
  }

  /// docs/GUIDE.md.
  @Test(.timeLimit(.minutes(30)), .enabled("needs curl") { try await Need.program("curl").isMet() })
  func `the guide's commands run, in order`() async throws {
    let site = try Site(usesSpoolVariable: true)
    for block in try Readme("docs/GUIDE.md").blocks {
      switch block.language {
      case "console": try await runConsole(block, on: site)
      case "sh": try await expectSuccess(["/bin/sh", "-eu", "-c", block.text], block, on: site)
      case "crontab": try await runCron(block, on: site)
      default: Issue.record("docs/GUIDE.md:\(block.line): no test knows how to run a block of `\(block.language)`")
      }
    }
    for output in ["data.tar", "survey/survey.tar", "pub/new.tar"] {
      #expect(try readFile("\(site.directory.path)/\(output)") == Site.payload, "\(output)")
    }
    for output in ["photos.zip", "gone.iso", "pub/new.tar", "podcasts/3.mp3", "input.tar", "new.tar", "ca/cacert.pem"] {
      #expect(try readFile("\(site.spool)/files/\(output)") == Site.payload, "\(output)")
    }
    #expect(fileStatus("\(site.directory.path)/report.html") != nil && site.files("failed") == [])
  }

  @Test(.timeLimit(.minutes(30)), .enabled("needs inotifywait") { try await Need.program("inotifywait").isMet() })
  func `the inotify line runs jobs as they are dropped`() async throws {
    let site = try Site()
    let block = try #require(try Readme().blocks.first { $0.text.contains("inotifywait") })
    _ = try await site.run(["/usr/bin/env", "spoolrun", "init", "spool"])
    let watcher = try RunningCommand(
      ["/bin/sh", "-c", site.localized(block.text)], environment: site.environment, directory: site.directory.path)
    defer { kill(-watcher.processID, SIGKILL) }
    // Nothing tells from outside when it has begun to watch: jobs go in until one is done.
    let numbers = Counter()
    try await waitUntil("a job is done", every: .milliseconds(100)) {
      if !site.files("done").isEmpty { return true }
      let number = numbers.next()
      let (draft, job) = ("\(site.spool)/tmp/\(number)", "\(site.spool)/new/\(number)")
      try writeFile(draft, Array("\(site.server.url("/data.tar"))\noutput: \(number)\n".utf8))
      #expect(rename(draft, job) == 0)
      return false
    }
    kill(-watcher.processID, SIGTERM)
    _ = try await watcher.result()
  }

  private func runConsole(_ block: Readme.Block, on site: Site) async throws {
    for step in ConsoleStep.steps(block).map(site.localized) {
      let result = try await site.run(["/bin/sh", "-c", step.command])
      #expect(result.status == .exited(0), "\(block.line): \(step.command): \(result)")
      let printed = result.output + result.errors
      #expect(step.isShown(printed), "\(block.line): \(step.command): \(printed)")
    }
  }

  private func expectSuccess(_ argv: [String], _ block: Readme.Block, on site: Site) async throws {
    let result = try await site.run(argv)
    #expect(result.status == .exited(0), "\(block.line): \(result)")
  }

  /// What cron would do meanwhile: the example of it has to run, and any outcome of a job is fine.
  private func runCron(_ block: Readme.Block, on site: Site) async throws {
    for line in block.lines {
      let fields = line.split(separator: " ", maxSplits: 5)
      #expect(fields.count == 6 && fields.prefix(5).allSatisfy { $0.allSatisfy { "*/0123456789,-".contains($0) } })
      let result = try await site.run(["/bin/sh", "-c", String(fields[5])])
      #expect([.exited(0), .exited(1), .exited(75)].contains(result.status), "\(block.line): \(result)")
    }
  }
}

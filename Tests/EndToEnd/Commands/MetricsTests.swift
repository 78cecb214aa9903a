import Foundation
import Glibc
import TestSupport
import Testing

/// `status --metrics` and what reads it.
@Suite struct MetricsTests {
  private let directory: TemporarySpool

  init() throws { directory = try TemporarySpool() }

  private func write(_ path: String, _ text: String) throws { try writeFile(directory.path(path), text) }

  private let receipt = """
    https://h/x
    failed: 2026-11-21T03:00:41Z attempt=1 class=temporary code=cut at=0 fetched=10 retry=2026-11-21T03:01:41Z reason=x
    done: 2026-11-21T03:02:41Z attempts=2 output=x bytes-fetched=100 seconds=9

    """

  private func fill() throws {
    for name in ["a", "b"] { try write("done/\(name)", receipt) }
    try write("failed/f", "https://h/x\nfailed: 2026-11-21T03:00:41Z attempt=1 code=http-404 at=0 reason=x\n")
    try write("failed/stranger", "https://h/x\nfailed: x code=\"evil\\\"} 1\\x0aspoolrun_jobs 9\" retry=x\n")
    try write("new/w", "https://h/x\n")
    try write("partial/p", "https://h/x\nfailed: 2026-11-21T03:00:41Z attempt=1 code=cut fetched=5 retry=x reason=x\n")
    try setModificationTime(directory.path("partial/p"), secondsFromNow: 1000)
  }

  /// It was paused after the death of its worker.
  @Test(arguments: ["hold", "new"])
  func `data that no line tells of counts wherever its job is`(place: String) async throws {
    try write(
      "\(place)/x",
      "http://h/x\nstarted: 2026-11-21T03:00:41Z attempt=1 worker=h.1.00000001 mirror=1 url=http://h/x\n"
        + "response: mirror=1 at=0 part=7 size=9000 resource=http://h/x\n")
    try writeFile(directory.path("partial/x.part"), [UInt8](repeating: 1, count: 1000))
    #expect(try await value("spoolrun_bytes_total", in: metrics("--metrics")) == "1000")
  }

  private func metrics(_ options: String...) async throws -> String {
    let result = try await spoolrun(["status"] + options + [directory.root])
    #expect(result.status == .exited(0) && result.errors.isEmpty, "\(result)")
    return result.output
  }

  private func value(_ name: String, _ label: String = "", in text: String) throws -> String? {
    let line = text.split(separator: "\n").first { $0.hasPrefix("\(name){") && (label.isEmpty || $0.contains(label)) }
    return line.flatMap { $0.split(separator: " ").last.map(String.init) }
  }

  @Test func `it prints what there is`() async throws {
    try fill()
    let text = try await metrics("--metrics")
    #expect(text.hasSuffix("# EOF\n"))
    #expect(try value("spoolrun_jobs", "state=\"failed\"", in: text) == "2")
    #expect(try value("spoolrun_jobs", "state=\"done\"", in: text) == "2")
    #expect(try value("spoolrun_done_total", in: text) == "2")
    #expect(try value("spoolrun_bytes_total", in: text) == "205")
    #expect(try value("spoolrun_given_up_total", in: text) == "1")
    #expect(try value("spoolrun_failures_total", "code=\"cut\"", in: text) == "3")
    #expect(try value("spoolrun_failures_total", "code=\"http-404\"", in: text) == "1")
    #expect(try value("spoolrun_failures_total", "code=\"other\"", in: text) == "1")
    #expect(try value("spoolrun_failures_total", "code=\"tls\"", in: text) == "0")
    let next = try #require(try value("spoolrun_next_attempt_timestamp_seconds", in: text).flatMap { Int($0) })
    #expect(abs(next - time(nil) - 1000) < 600)
    #expect(try value("spoolrun_free_bytes", "place=\"output\"", in: text) != nil)
    #expect(!text.contains("evil"))
  }

  @Test(.enabled("needs python3-prometheus-client") { try await Need.prometheusClient.isMet() })
  func `it is OpenMetrics, by the strict reader of Prometheus's own client`() async throws {
    try fill()
    let file = directory.path("tmp/metrics")
    try writeFile(file, try await metrics("--metrics"))
    let reader = """
      import sys; from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
      print(sum(len(f.samples) for f in read(open(sys.argv[1]).read())))
      """
    let result = try await run(["/usr/bin/python3", "-c", reader, file])
    #expect(result.status == .exited(0) && Int(result.output.dropLast()) ?? 0 > 50, "\(result)")
  }

  @Test(.enabled("needs promtool") { try await Need.prometheus.isMet() })
  func `promtool finds nothing wrong with the text format`() async throws {
    try fill()
    let file = directory.path("tmp/metrics")
    try writeFile(file, try await metrics("--textfile", "-"))
    let result = try await run(["/bin/sh", "-c", "exec promtool check metrics <\"$0\"", file])
    #expect(result.status == .exited(0) && (result.output + result.errors).isEmpty, "\(result)")
  }

  @Test func `a file of metrics is replaced, and its counters never fall`() async throws {
    try fill()
    let file = directory.path("tmp/spoolrun.prom")
    func update() async throws -> String {
      let printed = try await metrics("--textfile", file)
      #expect(printed.isEmpty)
      return try readText(file)
    }
    // One receipt is old, so the file remembers it; one is new, and is read each time.
    try setModificationTime(directory.path("done/a"), secondsFromNow: -7200)
    var text = try await update()
    #expect(try value("spoolrun_done_total", in: text) == "2")
    #expect(try value("spoolrun_failures_total", "code=\"http-404\"", in: text) == "1")
    for path in ["done/a", "done/b", "failed/f"] { #expect(unlink(directory.path(path)) == 0) }
    text = try await update()
    #expect(try value("spoolrun_jobs", "state=\"done\"", in: text) == "0")
    #expect(try value("spoolrun_done_total", in: text) == "2")
    #expect(try value("spoolrun_bytes_total", in: text) == "205")
    #expect(try value("spoolrun_failures_total", "code=\"http-404\"", in: text) == "1")
    try write("done/c", receipt)
    text = try await update()
    #expect(try value("spoolrun_done_total", in: text) == "3")
    #expect(try value("spoolrun_bytes_total", in: text) == "305")
    #expect(names(in: directory.path("tmp")).filter { $0.contains("spoolrun.prom") } == ["spoolrun.prom"])
  }

  @Test func `a run by a clock that was ahead stops no counter`() async throws {
    try fill()
    let file = directory.path("tmp/spoolrun.prom")
    _ = try await metrics("--textfile", file)
    let text = try readText(file)
    let ahead = text.replacing(/before=[0-9]+/, with: "before=4000000000")
    #expect(ahead != text)
    try writeFile(file, ahead)
    try write("done/c", receipt)
    _ = try await metrics("--textfile", file)
    #expect(try value("spoolrun_done_total", in: readText(file)) == "3")
  }

  /// It is read in some directories and not in others: what it has must not count each time that it comes back.
  @Test func `a subscription is no job, wherever it is`() async throws {
    let failed = "failed: 2026-11-21T03:00:41Z attempt=1 code=cut fetched=5 retry=x reason=x\n"
    try #require(mkdir(directory.path("standing"), 0o700) == 0)
    try write("standing/feed", "url: https://h/f\nevery: 1h\n" + failed + failed)
    let file = directory.path("tmp/spoolrun.prom")
    for move in [("standing", "hold"), ("hold", "standing"), ("standing", "failed")] {
      try directory.move("\(move.0)/feed", "\(move.1)/feed")
      _ = try await metrics("--textfile", file)
      let text = try readText(file)
      #expect(try value("spoolrun_failures_total", "code=\"cut\"", in: text) == "0")
      #expect(try value("spoolrun_bytes_total", in: text) == "0")
    }
  }

  /// Of very many that wait, not all are read.
  @Test func `counters do not rise by themselves`() async throws {
    let failed = "https://h/x\nfailed: 2026-11-21T03:00:41Z attempt=1 code=cut retry=x reason=x\n"
    for number in 0..<9990 { try write("new/\(number)", failed) }
    let file = directory.path("tmp/spoolrun.prom")
    for changes in [0, 100, -100] {
      for number in 0..<abs(changes) {
        let path = "new/plain\(number)"
        if changes > 0 { try write(path, "https://h/x\n") } else { #expect(unlink(directory.path(path)) == 0) }
      }
      _ = try await metrics("--textfile", file)
      let text = try readText(file)
      #expect(try value("spoolrun_failures_total", "code=\"cut\"", in: text) == "9990")
    }
  }

  @Test func `a file that cannot be written is said, and the old one stays`() async throws {
    try fill()
    try await spoolrun("status", "--textfile", "\(directory.root)/none/x.prom", directory.root)
      .exits(73, saying: "x.prom")
    try await spoolrun("status", "--metrics", "--json", directory.root).exits(64)
  }

  @Test func `the dashboard is JSON, and names metrics that exist`() async throws {
    try fill()
    let text = try await metrics("--metrics")
    let dashboard = try readText(SourceTree.contrib("prometheus/grafana.json"))
    #expect(try JSONSerialization.jsonObject(with: Data(dashboard.utf8)) is [String: Any])
    let rules = try readText(SourceTree.contrib("prometheus/alerts.yml"))
    var names: Set<Substring> = []
    for match in (dashboard + rules).matches(of: /\bspoolrun_[a-z_]+/) { names.insert(match.output) }
    #expect(names.count >= 12)
    for name in names { #expect(text.contains("\n\(name){"), "\(name)") }
    // And the other way round: what is printed can be seen, and is explained.
    let printed = Set(text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { $0.prefix { $0 != "{" } })
    #expect(printed.subtracting(names) == [])
    let manual = try SourceTree.lines("man/spoolrun.1")
    for name in printed { #expect(manual.contains { $0.hasPrefix(".It Li \(name)") }, "\(name)") }
  }
}

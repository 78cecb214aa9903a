import Foundation
import Glibc
import TestSupport
import Testing

/// Debian's Prometheus and node_exporter with the files of `contrib/prometheus`.
@Suite struct PrometheusTests {
  @Test(.enabled("needs promtool") { try await Need.prometheus.isMet() })
  func `promtool finds the rules sound, and their tests pass`() async throws {
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts-test.yml"]] {
      try await run(["/usr/bin/env", "promtool"] + arguments, directory: SourceTree.contrib("prometheus")).exits(0)
    }
    // Each rule is tested.
    let tests = try readText(SourceTree.contrib("prometheus/alerts-test.yml"))
    let rules = try readText(SourceTree.contrib("prometheus/alerts.yml"))
    let alerts = rules.matches(of: /alert: (\w+)/).map(\.1)
    #expect(alerts.count > 5)
    for alert in alerts { #expect(tests.matches(of: try Regex("alertname: \(alert)\\b")).count == 2, "\(alert)") }
  }

  @Test(.timeLimit(.minutes(10)), .enabled("needs prometheus") { try await Need.prometheus.isMet() })
  func `a failed job fires an alert, by the file of metrics and by OpenMetrics`() async throws {
    let spool = try TemporarySpool()
    let failure = "failed: 2026-11-21T03:00:41Z attempt=1 class=permanent code=http-404 at=0 reason=x\n"
    try spool.write("failed/gone", "https://h/x\n\(failure)")
    let metrics = try await TestSupport.spoolrun("status", "--metrics", spool.root).output
    let server = try ScriptedServer { _, reply in
      try reply.head(
        "200 OK",
        [
          "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8",
          "Content-Length: \(metrics.utf8.count)",
        ])
      try reply.send(Array(metrics.utf8)[...])
    }
    let directory = try TemporaryDirectory()
    let (collector, prometheus) = (try freePort(), try freePort())
    _ = try await TestSupport.spoolrun("status", "--textfile", "\(directory.path)/spoolrun.prom", spool.root)
    // The test does not wait for as long as people would.
    let rules = try readText(SourceTree.contrib("prometheus/alerts.yml"))
    try writeFile("\(directory.path)/alerts.yml", rules.replacing(/\n +for: \w+/, with: ""))
    let configuration = """
      global: {scrape_interval: 1s, evaluation_interval: 1s}
      rule_files: [\(directory.path)/alerts.yml]
      scrape_configs:
        - {job_name: node, static_configs: [{targets: ['127.0.0.1:\(collector)']}]}
        - {job_name: direct, static_configs: [{targets: ['\(server.url("").dropFirst(7))']}]}

      """
    try writeFile("\(directory.path)/prometheus.yml", configuration)
    let programs = [
      try RunningCommand([
        "/usr/bin/env", "prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
        "--collector.textfile.directory=\(directory.path)", "--web.listen-address=127.0.0.1:\(collector)",
      ]),
      try RunningCommand([
        "/usr/bin/env", "prometheus", "--config.file=\(directory.path)/prometheus.yml",
        "--storage.tsdb.path=\(directory.path)/data", "--web.listen-address=127.0.0.1:\(prometheus)",
      ]),
    ]
    defer { for program in programs { program.send(signal: SIGKILL) } }
    func ask(_ path: String) async throws -> String {
      try await run([
        "/usr/bin/env", "curl", "--silent", "--globoff", "http://127.0.0.1:\(prometheus)/api/v1/\(path)",
      ]).output
    }
    // Asks until the answer has it: after a scrape that took longer than a second, nothing is there until the next one.
    func expect(_ text: String, of path: String) async throws {
      let deadline = ContinuousClock.now + untilItHangs
      var answer = try await ask(path)
      while !answer.contains(text), ContinuousClock.now < deadline { answer = try await ask(path) }
      #expect(answer.contains(text), "\(path): \(answer)")
    }
    // Asks until the alert fires for both.
    let waiting = """
      while :; do
        answer=$(curl --silent --globoff "$0")
        case $answer in *'"job":"direct"'*'"job":"node"'* | *'"job":"node"'*'"job":"direct"'*) exit 0 ;; esac
        sleep 0.5
      done
      """
    let query = #"query?query=ALERTS{alertname="SpoolrunJobsFailed",alertstate="firing"}"#
    let fired = try await run(
      ["/bin/sh", "-c", waiting, "http://127.0.0.1:\(prometheus)/api/v1/\(query)"], directory: directory.path)
    #expect(fired.status == .exited(0), "\(fired)")
    try await expect("1 jobs of \(spool.root) were given up", of: "alerts")
    try await expect(#""0"]"#, of: "query?query=node_textfile_scrape_error")
    for job in ["node", "direct"] {
      try await expect(#""1"]"#, of: #"query?query=spoolrun_failures_total{code="http-404",job="\#(job)"}"#)
    }
    // Grafana puts its variables into the expressions, and asks them as they are then.
    let dashboard = try readText(SourceTree.contrib("prometheus/grafana.json"))
    var shown = 0
    let deadline = ContinuousClock.now + untilItHangs
    // This spool has no data, no rate and no time of a next attempt. Some of the rest needs a second scrape.
    while shown < 10, ContinuousClock.now < deadline {
      shown = 0
      for match in dashboard.matches(of: /"expr": "((?:[^"\\]|\\.)*)"/) {
        let expression = match.1.replacing("\\\"", with: "\"").replacing(/\$\w+/, with: ".*")
        let answer = try await run([
          "/usr/bin/env", "curl", "--silent", "--get", "--data-urlencode", "query=\(expression)",
          "http://127.0.0.1:\(prometheus)/api/v1/query",
        ]).output
        #expect(answer.contains(#""status":"success""#), "\(expression): \(answer)")
        if !answer.contains(#""result":[]"#) { shown += 1 }
      }
    }
    #expect(shown >= 10, "\(shown)")
  }
}

import Testing

@testable import Spool

/// The priority of a job, by its text, its journal and `defaults`.
@Suite struct PriorityTextTests {
  private static let urgent = "urgent: 2026-11-21T03:00:00Z\n"

  @Test(
    arguments: [
      ("", nil, .normal), ("", .low, .low), ("priority: normal\n", .low, .normal), ("priority: high\n", nil, .high),
      (urgent, .low, .high), ("priority: low\n" + urgent, nil, .high),
      (urgent + "requeued: 2026-11-21T03:00:00Z\n", nil, .high),
    ] as [(String, Priority?, Priority)])
  func priority(lines: String, inherited: Priority?, expected: Priority) {
    var defaults = JobRequest()
    defaults.priority = inherited
    let job = parsed("https://h/a\n" + lines)
    #expect(job.defect == nil && job.priority(inheriting: defaults) == expected)
  }

  /// All else of the text stays as a person wrote it.
  @Test(
    arguments: [
      ("https://h/a\n", "https://h/a\npriority: low\n"),
      ("# first\npriority: high\nhttps://h/a\n", "# first\nhttps://h/a\npriority: low\n"),
      (
        "url: https://h/a\n\t priority:high\nrequeued: x\n" + urgent + "started: y\npriority: normal\n",
        "url: https://h/a\npriority: low\nrequeued: x\nstarted: y\n"
      ),
      ("https://h/a\nsize: 1", "https://h/a\npriority: low\nsize: 1"),
      ("https://h/a\nfailed: x\nstar", "https://h/a\npriority: low\nfailed: x\nstar"), ("", "priority: low\n"),
    ])
  func aPriorityIsWritten(before: String, after: String) {
    #expect(String(decoding: JobText.settingPriority(.low, in: Array(before.utf8)), as: UTF8.self) == after)
  }
}

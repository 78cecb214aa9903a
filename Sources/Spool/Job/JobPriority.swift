extension JobText {
  /// The job's priority: `high` after it came through `urgent/`, else what it asks for.
  package func priority(inheriting defaults: JobRequest) -> Priority {
    journal.isUrgent ? .high : request.priority ?? defaults.priority ?? .normal
  }

  /// Whether a text that this program has written asks for high priority. To read all of it would take much of the time
  /// in which a million jobs are dropped.
  static func saysHighPriority(_ bytes: [UInt8]) -> Bool {
    let wanted = "priority: \(Priority.high.rawValue)".utf8
    return bytes.withUnsafeBytes { JobLines($0).contains { $0.isComplete && $0.bytes.elementsEqual(wanted) } }
  }

  /// Whether the text itself shows that the job has high priority, wherever it is.
  var isMarkedUrgent: Bool { priority(inheriting: JobRequest()) == .high }

  /// A job's text with another priority: the only `priority:` line is this one, and that the job came through `urgent/`
  /// does not count any more.
  static func settingPriority(_ priority: Priority, in bytes: [UInt8]) -> [UInt8] {
    let kept = JobLines.kept(of: bytes) { line in
      !line.isComplete || !line.sets(["priority"]) && line.journal?.key != .urgent
    }
    let position = kept.withUnsafeBytes { kept in
      JobLines(kept).first { !$0.isComplete || $0.journal != nil }?.range.lowerBound ?? kept.count
    }
    return Array(kept[..<position]) + Array("priority: \(priority.rawValue)\n".utf8) + kept[position...]
  }
}

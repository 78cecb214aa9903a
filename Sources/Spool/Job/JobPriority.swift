extension JobText {
  /// The job's priority: `high` after it came through `urgent/`, else what it asks for.
  package func priority(inheriting defaults: JobRequest) -> Priority {
    journal.isUrgent ? .high : request.priority ?? defaults.priority ?? .normal
  }

  /// Whether a text that this program has written asks for high priority. To read all of it would take much of the time
  /// in which a million jobs are dropped.
  static func saysHighPriority(_ bytes: [UInt8]) -> Bool {
    let wanted = "priority: \(Priority.high.rawValue)".utf8
    var start = 0
    while let end = bytes[start...].firstIndex(of: 0x0A) {
      if bytes[start..<end].elementsEqual(wanted) { return true }
      start = end + 1
    }
    return false
  }

  /// Whether the text itself shows that the job has high priority, wherever it is.
  var isMarkedUrgent: Bool { priority(inheriting: JobRequest()) == .high }

  /// A job's text with another priority: the only `priority:` line is this one, and that the job came through `urgent/`
  /// does not count any more.
  static func settingPriority(_ priority: Priority, in bytes: [UInt8]) -> [UInt8] {
    let own = Array("priority: \(priority.rawValue)\n".utf8)
    let journal = JournalKey.allCases.map { Array("\($0.rawValue): ".utf8) }
    var result: [UInt8] = []
    var position: Int?
    var start = 0
    while let end = bytes[start...].firstIndex(of: 0x0A) {
      let line = bytes[start...end]
      start = end + 1
      let content = line.drop(while: isBlank)
      if content.starts(with: Array("priority:".utf8)) || line.starts(with: Array("urgent: ".utf8)) { continue }
      if position == nil, journal.contains(where: { line.starts(with: $0) }) { position = result.count }
      result += line
    }
    result.insert(contentsOf: own, at: position ?? result.count)
    return result + bytes[start...]
  }
}

extension JobRequest {
  /// Whether it asks to watch a list, and so belongs into `standing`.
  package var isStandingOrder: Bool { standing.every != nil }

  /// Why a file with this request cannot be claimed from `origin`; nil where it can.
  func misplacement(in origin: Directory) -> Defect? {
    switch origin {
    case .standing: orderDefect
    case .new, .urgent: jobDefect
    default: isStandingOrder ? orderDefect : jobDefect
    }
  }

  /// Why the request is no job's.
  package var jobDefect: Defect? {
    if standing == StandingOrder() { return nil }
    let keys = JobKey.ofOrders.map { "`\($0.name)`" }.joined(separator: ", ")
    return Defect(line: nil, reason: "\(keys) belong to a standing order: its file goes into the directory standing")
  }

  /// Why the request is no standing order's.
  package var orderDefect: Defect? {
    if standing.every == nil { return Defect(line: nil, reason: "a standing order needs `every:`, such as every: 6h") }
    if let resolve {
      return Defect(line: resolve.number, reason: "resolve: belongs to a job, not to a standing order")
    }
    if let output, !output.isDirectory {
      return Defect(line: output.number, reason: "output: of a standing order is a directory, with a slash at its end")
    }
    if expected != Expectation() {
      return Defect(line: nil, reason: "`size` and digests belong to one file, not to a standing order")
    }
    return nil
  }
}

extension JobKey {
  /// The keys that only standing orders have.
  package static let ofOrders = [
    JobKey(
      "every", \.standing.every, .interval, valueName: "time", scope: .job,
      help: "Time from one look at the list to the next, such as 6h."),
    JobKey(
      "entries", \.standing.entries, .entryFormat, valueName: "format", scope: .job,
      help: "What the list is: \(EntryFormat.listed). (default: by its looks)"),
    JobKey(
      "first", \.standing.first, .firstEntries, valueName: "n", scope: .job,
      help: "How many of the entries that are there at first are fetched, or all. (default: 1)"),
    JobKey(
      "match", \.standing.match, .pattern, valueName: "glob", scope: .job,
      help: "Only files of such names, such as '*.mp3'."),
  ]
}

extension ValueGrammar<Int> {
  static let interval = ValueGrammar(
    "a time from 1s to 365d, such as 6h", read: { duration($0) }, write: { durationText($0) })

  static let firstEntries = ValueGrammar(
    "a number of entries, or all",
    read: { text in
      if text == "all" { return StandingOrder.all }
      return decimal(text).flatMap { Int(exactly: $0) }.flatMap { $0 < StandingOrder.all ? $0 : nil }
    },
    write: { $0 == StandingOrder.all ? "all" : "\($0)" })
}

extension ValueGrammar<EntryFormat> {
  static let entryFormat = ValueGrammar(
    "one of \(EntryFormat.listed)", read: { EntryFormat(rawValue: $0) }, write: { $0.rawValue })
}

extension ValueGrammar<String> {
  static let pattern = ValueGrammar(
    "a pattern for names, such as *.mp3", read: { $0.utf8.count <= 255 ? $0 : nil }, write: { $0 })
}

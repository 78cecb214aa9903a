internal import Spool
internal import SpoolLists
internal import Transfer

/// The files of a list, for `spoolrun get --from`.
struct GetList {
  let list: ListArguments
  let given: [(key: JobKey, text: String)]

  /// The path of each file below the person's directory, and what the list asks for. Strangers choose these paths, so
  /// no directory among them is entered here: the worker does that, by the rules of `output:`.
  /// - Parameter file: the list; `-` for standard input.
  /// - Throws: ``ListProblems``; ``Defect`` with the line of the list, or of nothing for an option; ``SpoolError``
  ///   where it cannot be read; `ValidationError`.
  func files(_ file: String) throws -> [(name: String, asked: JobRequest)] {
    var options = JobRequest()
    for (key, text) in given {
      if key.scope == .job { throw Defect(line: nil, reason: "--\(key.name) is for one file") }
      try options.set(key, text)
    }
    let path = file == "-" ? nil : RawArguments.bytes(of: [file])[0]
    let reader = try ListReader(path, list.options())
    var plan = ListPlan(options, directory: nil, schemes: .all, takesRoots: false)
    var jobs: [CheckedJob] = []
    let tally = try plan.read(reader, leavesOut: list.ignoreUnknown) { jobs.append($0) }
    ListComplaint(title: Self.title(file), problems: tally.problems).tellWhatIsLeftOut()
    var settling = ListSettling(plan)
    var marked: [String] = []
    let files = try jobs.map { job in
      var asked = try settling.settle(job).job.request
      let last = try asked.urls.first.flatMap { url throws(Defect) in try Self.name(of: url.text) }
      guard let name = asked.outputText(named: last) else {
        throw Defect(line: job.line, reason: "the URL does not end in a file name: it needs an output")
      }
      if let wanted = job.wanted, let given = asked.output?.text, given.exact != wanted.exact { marked.append(name) }
      let isOfURL = asked.output?.isDirectory ?? true
      asked.output = nil
      return (name: isOfURL ? name : String(trimmed(name[...])), asked: asked)
    }
    tell(marked)
    return files
  }

  private func tell(_ marked: [String]) {
    guard let example = marked.last else { return }
    Terminal.error(
      "\(marked.count) of the files get a mark in their names, such as \(escaped(example)), because others of the list "
        + "have the same", .info)
  }

  /// What messages call a list.
  static func title(_ file: String) -> String { file == "-" ? "standard input" : escaped(file) }

  /// The file name that a URL ends in; nil if it ends in none.
  static func name(of url: String) throws(Defect) -> String? {
    do throws(URLProblem) { return try URLParts(url).lastPathSegment } catch {
      throw Defect(line: nil, reason: "url: \(error.reason)")
    }
  }
}

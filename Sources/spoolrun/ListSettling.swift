internal import Spool
internal import SpoolLists

/// Gives jobs of a list that want the same name, or the same output, names of their own, when all of the list is known.
/// The names come from the URLs (``PayloadName/marked(_:of:_:limit:)``), so the order of the list makes no difference.
struct ListSettling {
  private var outputs: ListNames
  private var names: ListNames
  private var earlier = EarlierNames()

  /// Whether there is anything to do.
  var isNeeded: Bool { outputs.isAnyContested || names.isAnyContested }

  init(_ plan: ListPlan) {
    outputs = plan.outputs
    names = plan.names
  }

  /// - Parameter job: each job of the list, in its order.
  /// - Returns: the job as it is dropped, and as it was dropped before 0.2 had this rule; nil where that is the same.
  /// - Throws: ``Defect`` with a line of the list.
  mutating func settle(_ job: CheckedJob) throws(Defect) -> (job: CheckedJob, earlier: CheckedJob?) {
    let wanted = job.wanted.flatMap { outputs.isContested(Array($0.utf8)) ? $0 : nil }
    guard wanted != nil || names.isContested(job.name.fileName.bytes) else { return (job, nil) }
    var request = job.request
    let earlier = earlier.next(job, request, wanted)
    var texts = request.urls.map(\.text)
    if let wanted {
      let output = try Self.free(wanted, of: texts, in: &outputs, job.line) { Array($0.utf8) }
      request.output = .init(text: output, number: job.line)
    } else {
      // One URL may be wanted in several places.
      texts.append("\(request.root?.text ?? ""):\(job.wanted ?? request.output?.text ?? "")")
    }
    // What the job wants is cut to that length already.
    let like = wanted ?? job.wanted ?? request.output?.text ?? ""
    let name = try Self.free(like, of: texts, in: &names, job.line, limit: JobName.lengthWithoutNumber) {
      JobName(like: $0).fileName.bytes
    }
    let settled = CheckedJob(text: Array(request.text.utf8), name: JobName(like: name), wanted: nil, line: job.line)
    return (settled, earlier)
  }

  private static func free(
    _ wanted: String, of texts: [String], in taken: inout ListNames, _ line: Int, limit: Int = FileName.maximumLength,
    _ bytes: (String) -> [UInt8]
  ) throws(Defect) -> String {
    let marked = { PayloadName.marked(wanted, of: texts, $0, limit: limit) }
    let name = taken.isWanted(bytes(marked(.usual))) ? marked(.whole) : marked(.usual)
    if taken.give(bytes(name)) { return name }
    throw Defect(line: line, reason: "an earlier line asks for the same URLs and output, and is not the same")
  }
}

/// The names that jobs of one list had before: numbers in the order of the list. A list that was added then must not be
/// dropped again.
private struct EarlierNames {
  private var outputs: [ExactText: Int] = [:]
  private var names: [JobName: Int] = [:]

  mutating func next(_ job: CheckedJob, _ request: JobRequest, _ wanted: String?) -> CheckedJob {
    var request = request
    if let wanted {
      let number = Self.count(wanted.exact, in: &outputs)
      if number > 1 {
        let slash = wanted.utf8.lastIndex(of: 0x2F).map { wanted.utf8.index(after: $0) } ?? wanted.startIndex
        let name = FileName(String(wanted[slash...])).numbered(number, limit: FileName.maximumLength)
        // Cut to size, a name may end in half a character.
        request.output = .init(text: wanted[..<slash] + String(decoding: name.bytes, as: UTF8.self), number: job.line)
      }
    }
    let number = Self.count(job.name, in: &names)
    return CheckedJob(
      text: Array(request.text.utf8), name: number > 1 ? job.name.numbered(number) : job.name, wanted: nil,
      line: job.line)
  }

  private static func count<Key>(_ key: Key, in counts: inout [Key: Int]) -> Int {
    counts[key, default: 0] += 1
    return counts[key] ?? 1
  }
}

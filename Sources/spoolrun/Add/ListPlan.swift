internal import Spool
internal import SpoolLists
internal import Transfer

/// Turns the jobs of a list into those that are dropped: checks them, and gives each an output and a name.
struct ListPlan {
  /// The keys that apply to all jobs of the list that do not set them.
  private let options: JobRequest
  private let hasOptions: Bool
  /// The directory below the output root for all of them, without a slash at the end; nil for none.
  private let directory: String?
  /// Those that the spool's worker allows.
  private let schemes: AllowedSchemes
  /// Whether a job may name an output root.
  private let takesRoots: Bool
  private let now = Timestamp.now()
  private var outputs = ListOutputs()
  private var names = ListNames()

  init(_ options: JobRequest, directory: String?, schemes: AllowedSchemes, takesRoots: Bool = true) {
    self.takesRoots = takesRoots
    self.options = options
    hasOptions = options != JobRequest()
    self.directory = directory
    self.schemes = schemes
  }

  /// - Parameter leavesOut: whether the list is taken without what cannot be used, if anything is left of it.
  /// - Parameter keepPieces: puts a list of pieces where the worker finds it; false to leave it out.
  /// - Returns: also how many jobs an earlier line asks for as well.
  /// - Throws: ``ListProblems`` where the list is refused; ``Defect`` where it cannot be read to its end.
  mutating func read(
    _ list: ListReader, leavesOut: Bool, keepPieces: (PieceList) throws -> Bool = { _ in false },
    _ take: (CheckedJob) throws -> Void
  ) throws -> (repeated: Int, problems: ListProblems) {
    var repeated = 0
    var isEmpty = true
    while var listed = try list.next() {
      if let pieces = listed.pieces, try keepPieces(pieces) { listed.request.expected.pieces = pieces.key }
      let job: CheckedJob?
      do throws(Defect) { job = try self.job(listed) } catch {
        list.leaveOut(error)
        continue
      }
      isEmpty = false
      if let job { try take(job) } else { repeated += 1 }
    }
    if list.problems.count > 0, isEmpty || !leavesOut { throw list.problems }
    return (repeated, list.problems)
  }

  /// The output and the name are those that the job wants; others may want them, too.
  /// - Returns: nil where an earlier line asks for the same.
  /// - Throws: ``Defect`` with a line of the list.
  mutating func job(_ listed: ListedJob) throws(Defect) -> CheckedJob? {
    var request = listed.request
    if hasOptions {
      request = request.inheriting(options)
      request.root = request.root ?? options.root
    }
    request.signedBy = options.signedBy
    if !takesRoots, let root = request.root {
      throw Defect(line: root.number, reason: "root: `get` puts all files into one directory")
    }
    let parts = try urls(of: request)
    if let expires = request.expires, expires <= now {
      throw Defect(line: listed.line, reason: "expires: \(expires) is past")
    }
    let directory = directory ?? listed.directory
    var text = request.text
    let output = try output(of: request, parts, directory, listed.line)
    let wanted = "\(request.root.map { $0.text + "\n" } ?? "")\(output.path)"
    switch outputs.note(Fingerprint(wanted), of: Fingerprint("\(directory ?? "")\n\(text)"), isFixed: output.isFixed) {
    case .new: break
    case .repeated: return nil
    case .taken:
      throw Defect(
        line: listed.line,
        reason: "an earlier line has the output `\(escaped(output.path))`, but is another job; "
          + "put the lines of one file together")
    }
    if directory != nil || request.output?.isDirectory == true {
      request.setOutput(output.path, number: listed.line)
      text = request.text
    }
    // Everything else was checked when it was read.
    if text.utf8.count + (output.isFixed ? 0 : Self.room(for: output.path)) > JobText.maximumRequest {
      throw Defect(line: listed.line, reason: "a job has at most 64 KiB")
    }
    let name = JobName(like: output.path)
    names.want(Fingerprint(name.fileName.bytes))
    return CheckedJob(text: Array(text.utf8), name: name, wanted: output.isFixed ? nil : wanted, line: listed.line)
  }

  /// The bytes that a job may grow by when its output gets a mark.
  private static func room(for path: String) -> Int { path.utf8.count + 128 }

  private func urls(of request: JobRequest) throws(Defect) -> [URLParts] {
    var parts: [URLParts] = []
    for url in request.urls {
      do throws(URLProblem) { parts.append(try URLParts(url.text)) } catch {
        throw Defect(line: url.number, reason: "url: \(error.reason)")
      }
      if let reason = parts.last.flatMap({ schemes.refusal(of: $0.scheme) }) {
        throw Defect(line: url.number, reason: reason)
      }
    }
    return parts
  }

  /// Where the payload should go. An output that the list names is taken as it is. One that the URL gives may still be
  /// changed.
  private func output(
    of request: JobRequest, _ parts: [URLParts], _ directory: String?, _ line: Int
  ) throws(Defect) -> (path: String, isFixed: Bool) {
    let parent = directory.map { $0 + "/" } ?? ""
    let isNamedByURL = request.output?.isDirectory ?? true
    guard let own = request.outputText(named: parts.first?.lastPathSegment) else {
      throw Defect(line: line, reason: "the URL does not end in a file name: it needs an output")
    }
    let path = parent + own
    if let reason = OutputPath.defect(of: path) {
      let advice = directory != nil && self.directory == nil ? "; -o DIR/ takes the place of the list's directory" : ""
      throw Defect(line: line, reason: "the output `\(escaped(path.prefix(80)))` \(reason)\(advice)")
    }
    if !isNamedByURL { return (path, true) }
    if Set(parts.map(\.lastPathSegment?.exact)).count > 1 {
      throw Defect(
        line: line, reason: "the URLs end in different names: if they are mirrors of one file, name its output")
    }
    return (path, false)
  }

  // MARK: when all of the list is known

  /// Whether jobs want the same name, or the same output.
  var isContested: Bool { !outputs.contested.isEmpty || !names.contested.isEmpty }

  /// Gives a job that wants what another one wants a name of its own. It comes from the URLs
  /// (``PayloadName/marked(_:of:_:limit:)``), so the order of the list makes no difference.
  /// - Returns: the job as it is dropped; nil where that is the same.
  /// - Throws: ``Defect`` with a line of the list.
  mutating func settle(_ job: CheckedJob) throws(Defect) -> CheckedJob? {
    let isContested = job.wanted.map { outputs.isContested(Fingerprint($0)) } ?? false
    guard isContested || names.isContested(Fingerprint(job.name.fileName.bytes)) else { return nil }
    var request = job.request
    var texts = request.urls.map(\.text)
    let root = request.root?.text
    // What the job wants is cut to the length of a name already.
    let like = job.wanted?.split(at: "\n").last.map { String($0) } ?? request.output?.text ?? ""
    if isContested {
      let prefix = root.map { $0 + "\n" } ?? ""
      request.output = .init(
        text: try Self.free(like, of: texts, in: &outputs, job.line) { Fingerprint(prefix + $0) }, number: job.line)
    }
    // One URL may be wanted in several places.
    if !isContested || root != nil { texts.append("\(root ?? ""):\(like)") }
    let name = try Self.free(like, of: texts, in: &names, job.line, limit: JobName.lengthWithoutNumber) {
      Fingerprint(JobName(like: $0).fileName.bytes)
    }
    return CheckedJob(text: Array(request.text.utf8), name: JobName(like: name), wanted: nil, line: job.line)
  }

  private static func free(
    _ wanted: String, of texts: [String], in taken: inout some ListTable, _ line: Int,
    limit: Int = FileName.maximumLength, _ key: (String) -> Fingerprint
  ) throws(Defect) -> String {
    let marked = { PayloadName.marked(wanted, of: texts, $0, limit: limit) }
    let name = taken.isWanted(key(marked(.usual))) ? marked(.whole) : marked(.usual)
    if taken.give(key(name)) { return name }
    throw Defect(line: line, reason: "an earlier line asks for the same URLs and output, and is not the same")
  }
}

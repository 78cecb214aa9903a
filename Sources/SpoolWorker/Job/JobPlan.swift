package import Spool
internal import Transfer

/// A request whose URLs and output have been checked.
///
/// A class, because it is passed through all steps of an attempt, and a copy of so many texts costs as much as a step.
package final class JobPlan: Sendable {
  let request: JobRequest
  /// Of the pieces that the payload consists of; nil if the job names none.
  let pieces: PieceList?
  /// Empty as long as the hook `resolve` has to say them.
  let mirrors: [MirrorURL]
  let output: OutputPath
  /// The job's own first URL as it may be shown; nil if it has none.
  let shownURL: String?

  /// - Parameter isPublished: whether its payload is; then what may be fetched does not matter.
  /// - Parameter first: its first URL, if that has been read already.
  /// - Throws: ``Failure``: `malformed` or `protocol` with the line, `bad-output`, `too-large`.
  init(
    _ request: JobRequest, protocols: Set<Scheme>, isPublished: Bool = false, pieces: PieceList? = nil,
    first: URLParts? = nil
  ) throws(Failure) {
    (self.request, self.pieces) = (request, pieces)
    if !isPublished, let failure = Failure.tooLarge(request.expected.size, most: request.maxSize) { throw failure }
    mirrors = try MirrorURL.all(of: request, isPublished ? Set(Scheme.allCases) : protocols, first: first)
    shownURL = mirrors.first?.parts.redacted
    guard let text = request.outputText(named: mirrors.first?.parts.lastPathSegment) else {
      throw Failure(
        .badOutput, "the URL does not end in a file name: name the file in an `output:` line",
        line: request.urls.first?.number)
    }
    guard let output = OutputPath(text) else {
      let reason = OutputPath.defect(of: text) ?? "cannot be a file name"
      throw Failure(
        .badOutput, "the name from the URL \(reason): add an `output:` line", line: request.urls.first?.number)
    }
    self.output = output
  }

  /// The plan of an attempt for which the hook `resolve` has said the links.
  /// - Throws: ``Failure``: `resolve-hook` where they cannot be used; `protocol`, `too-large`.
  func resolved(by links: JobRequest, protocols: Set<Scheme>) throws(Failure) -> JobPlan {
    let request: JobRequest
    do throws(Defect) { request = try self.request.resolved(by: links) } catch {
      throw Failure(.resolveHook, "the resolve hook says \(error.reason)")
    }
    if let failure = Failure.tooLarge(request.expected.size, most: request.maxSize) { throw failure }
    let mirrors = links.urls.isEmpty ? mirrors : try MirrorURL.all(of: request, protocols, areFromHook: true)
    return JobPlan(request, pieces, mirrors: mirrors, output: output, shownURL: shownURL)
  }

  private init(_ request: JobRequest, _ pieces: PieceList?, mirrors: [MirrorURL], output: OutputPath, shownURL: String?)
  {
    (self.request, self.pieces, self.mirrors, self.output) = (request, pieces, mirrors, output)
    self.shownURL = shownURL
  }
}

extension JobPlan {
  /// Whether the job asks for this now. What it says may have changed since its data came.
  func asks(for source: DataSource) -> Bool {
    if let text = request.resolve?.text, source.isSame(as: DataSource(resolve: text)) { return true }
    return mirrors.contains { $0.source(of: request).isSame(as: source) }
  }

  /// The path of the payload below the output root, as far as the job's text says it; nil for a job that has none, and
  /// for a subscription to a list, whose output is a directory.
  package static func output(of request: JobRequest) -> String? {
    if request.isStandingOrder, request.standing.entries != .file { return nil }
    return request.outputText(named: request.urls.first.flatMap { try? URLParts($0.text) }?.lastPathSegment)
  }

  /// The same with the output root that the job names, to tell whether two jobs have one output.
  package static func rootAndOutput(of request: JobRequest) -> ExactText? {
    output(of: request).map { qualified($0, request) }
  }

  /// The same for a job whose first URL, if it has one, has been read already.
  static func rootAndOutput(of request: JobRequest, _ url: URLParts?) -> ExactText? {
    request.outputText(named: url?.lastPathSegment).map { qualified($0, request) }
  }

  private static func qualified(_ output: String, _ request: JobRequest) -> ExactText {
    ((request.root.map { "\($0.text):" } ?? "") + output).exact
  }
}

extension JobRequest {
  /// This request with the keys of `defaults`, limited by the worker's own options. A job may only lower these limits.
  func bounded(by options: WorkerOptions) -> JobRequest {
    var result = inheriting(options.defaults)
    result.maxSize = [result.maxSize, options.maxSize].compactMap { $0 }.min()
    result.connections = result.connections.map { min($0, options.maxConnections) }
    result.patience = result.patience ?? options.patience
    return result
  }
}

extension Failure {
  /// The failure if a payload is too large; nil if it is not. No method of a request, which would be copied for it.
  /// - Parameter isAll: whether `size` is the size of the whole; otherwise it counts the bytes received so far.
  static func tooLarge(_ size: UInt64?, most: UInt64?, isAll: Bool = true) -> Failure? {
    guard let size, let most, size > most else { return nil }
    return Failure(
      .tooLarge, "the file is larger than max-size allows", expected: "at most \(most)",
      found: isAll ? "\(size)" : "at least \(size)")
  }
}

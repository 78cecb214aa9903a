package import Spool
internal import Transfer

/// A request whose URLs and output have been checked.
package struct JobPlan {
  let request: JobRequest
  let mirrors: [URLParts]
  let output: OutputPath

  /// - Throws: ``Failure``: `malformed` or `protocol` with the line, `bad-output`, `too-large`.
  init(_ request: JobRequest, protocols: Set<Scheme>) throws(Failure) {
    self.request = request
    if let size = request.expected.size, let failure = request.tooLarge(size) { throw failure }
    var mirrors: [URLParts] = []
    for line in request.urls {
      let parts: URLParts
      do throws(URLProblem) {
        parts = try URLParts(line.text)
      } catch {
        throw Failure(.malformed, "url: \(error.reason)", line: line.number)
      }
      guard protocols.contains(parts.scheme) else {
        throw Failure(
          .protocol, "the scheme \(parts.scheme) is not enabled: see --protocols", line: line.number)
      }
      mirrors.append(parts)
    }
    self.mirrors = mirrors
    guard let text = request.outputText(named: mirrors.first?.lastPathSegment) else {
      throw Failure(
        .badOutput, "the URL does not end in a file name: name the file in an `output:` line",
        line: request.urls.first?.number)
    }
    if let reason = OutputPath.defect(of: text) {
      throw Failure(
        .badOutput, "the name from the URL \(reason): add an `output:` line", line: request.urls.first?.number)
    }
    guard let output = OutputPath(text) else { throw Failure(.badOutput, "cannot be a file name") }
    self.output = output
  }
}

extension JobPlan {
  /// The path of the payload below the output root, as far as the job's text says it; nil for a job that has none.
  package static func output(of request: JobRequest) -> String? {
    request.outputText(named: request.urls.first.flatMap { try? URLParts($0.text) }?.lastPathSegment)
  }

  /// The same with the output root that the job names, to tell whether two jobs have one output.
  package static func rootAndOutput(of request: JobRequest) -> String? {
    output(of: request).map { qualified($0, request) }
  }

  /// The same for a job whose first URL has been read already.
  static func rootAndOutput(of request: JobRequest, _ url: URLParts) -> String? {
    request.outputText(named: url.lastPathSegment).map { qualified($0, request) }
  }

  private static func qualified(_ output: String, _ request: JobRequest) -> String {
    (request.root.map { "\($0.text):" } ?? "") + output
  }
}

extension JobRequest {
  /// This request with the keys of `defaults`, limited by the worker's own options. A job may only lower these limits.
  func bounded(by options: WorkerOptions) -> JobRequest {
    var result = inheriting(options.defaults)
    result.maxSize = [result.maxSize, options.maxSize].compactMap { $0 }.min()
    result.connections = result.connections.map { min($0, options.maxConnections) }
    return result
  }

  /// The failure if the payload is too large; nil if it is not.
  /// - Parameters:
  ///   - size: bytes of the payload.
  ///   - isAll: whether `size` is the size of the whole; otherwise it counts the bytes received so far.
  func tooLarge(_ size: UInt64, isAll: Bool = true) -> Failure? {
    guard let maxSize, size > maxSize else { return nil }
    return Failure(
      .tooLarge, "the payload is larger than max-size allows", expected: "at most \(maxSize)",
      found: isAll ? "\(size)" : "at least \(size)")
  }
}

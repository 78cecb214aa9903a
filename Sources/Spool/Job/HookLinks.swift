/// What the hook `resolve` prints: lines as in a job, which hold for one attempt (spool.5, HOOKS). They may contain
/// secrets, and are neither written anywhere nor shown.
package struct HookLinks: Sendable {
  private var request = JobRequest()

  /// - Parameter isForURL: whether the job has a URL of its own, which the lines may be for.
  /// - Throws: ``Defect`` with the number of the line. It quotes nothing of the line.
  package init(_ output: [UInt8], isForURL: Bool) throws(Defect) {
    request = try output.withUnsafeBytes { bytes in
      Result { () throws(Defect) in
        var request = JobRequest()
        for line in JobLines(bytes) { try Self.read(line, into: &request) }
        return request
      }
    }.get()
    if !request.urls.isEmpty { return }
    if !isForURL { throw Defect(line: nil, reason: "no `url:` line, and the job has no URL") }
    // A dropper chose the job's URL, and must not get what the hook prints for another.
    if request.headers.contains(where: { $0.host == nil }) {
      throw Defect(line: nil, reason: "a `header:` without a `url:` has to name its host, as in header@mirror.example")
    }
  }

  private static func read(_ line: JobLine, into request: inout JobRequest) throws(Defect) {
    let content: JobLine.Content
    do throws(InvalidValue) { content = try line.content() } catch {
      throw Defect(line: line.number, reason: error.reason)
    }
    switch content {
    case .comment: return
    case .url(let text): try JobKey.url.set(WrittenValue(text: String(text), line: line.number), in: &request)
    case .setting(let name, let value):
      guard let (key, host) = JobKey.find(name), isAllowed(key) else { fallthrough }
      try key.set(WrittenValue(text: String(value), host: host, line: line.number), in: &request)
    case .journal, .other:
      throw Defect(line: line.number, reason: "neither a URL nor one of `url:`, `header:`, `size:` and the digests")
    }
  }

  private static func isAllowed(_ key: JobKey) -> Bool {
    ["url", "header", "size"].contains(key.name) || DigestAlgorithm(rawValue: key.name) != nil
  }
}

extension JobRequest {
  /// This request with the hook's lines: its URLs in place of the job's, its header fields in place of those of the
  /// same name, and what it declares of the payload.
  /// - Throws: ``Defect`` where the job declares something else of the payload.
  package func resolved(by links: HookLinks) throws(Defect) -> JobRequest {
    var result = self
    if !links.urls.isEmpty { result.urls = links.urls }
    result.headers = links.headers.added(to: headers)
    if let size = links.expected.size {
      if expected.size ?? size != size { throw Defect(line: nil, reason: "another size than the job declares") }
      result.expected.size = size
    }
    if expected.digests.contradict(links.expected.digests) {
      throw Defect(line: nil, reason: "another digest than the job declares")
    }
    result.expected.digests = expected.digests.joined(with: links.expected.digests)
    return result
  }
}

extension HookLinks {
  /// The URLs that it printed; empty where those of the job hold.
  package var urls: [JobRequest.Line] { request.urls }
  /// Added to those of the job; those of one name replace them.
  package var headers: [HeaderLine] { request.headers }
  package var expected: Expectation { request.expected }
}

extension Failure {
  /// The failure of a job for which the hook `resolve` printed what cannot be used.
  package init(ofLinks defect: Defect) {
    self.init(.resolveHook, "what the resolve hook printed cannot be used: \(defect)")
  }
}

/// What the hook `resolve` prints: lines as in a job, which hold for one attempt (spool.5, HOOKS). They may contain
/// secrets, and are neither written anywhere nor shown.
extension JobRequest {
  /// - Parameter isForURL: whether the job has a URL of its own, which the lines may be for.
  /// - Throws: ``Defect`` with the number of the line. It quotes nothing of the line.
  package init(links output: [UInt8], isForURL: Bool) throws(Defect) {
    self = try output.withUnsafeBytes { bytes in
      Result { () throws(Defect) in
        var request = JobRequest()
        for line in JobLines(bytes) { try request.take(link: line) }
        return request
      }
    }.get()
    if !urls.isEmpty { return }
    if !isForURL { throw Defect(line: nil, reason: "no `url:` line, and the job has no URL") }
    // A dropper chose the job's URL, and must not get what the hook prints for another.
    if headers.contains(where: { $0.host == nil }) {
      throw Defect(line: nil, reason: "a `header:` without a `url:` has to name its host, as in header@mirror.example")
    }
  }

  private mutating func take(link line: JobLine) throws(Defect) {
    let content: JobLine.Content
    do throws(InvalidValue) { content = try line.content() } catch {
      throw Defect(line: line.number, reason: error.reason)
    }
    switch content {
    case .comment: return
    case .url(let text): try JobKey.url.set(WrittenValue(text: String(text), line: line.number), in: &self)
    case .setting(let name, let value):
      guard let (key, host) = JobKey.find(name),
        ["url", "header", "size"].contains(key.name) || DigestAlgorithm(rawValue: key.name) != nil
      else { fallthrough }
      try key.set(WrittenValue(text: String(value), host: host, line: line.number), in: &self)
    case .journal, .other:
      throw Defect(line: line.number, reason: "neither a URL nor one of `url:`, `header:`, `size:` and the digests")
    }
  }

  /// This request with the hook's lines: its URLs in place of the job's, its header fields in place of those of the
  /// same name, and what it declares of the payload.
  /// - Throws: ``Defect`` where the job declares something else of the payload.
  package func resolved(by links: JobRequest) throws(Defect) -> JobRequest {
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

extension Failure {
  /// The failure of a job for which the hook `resolve` printed what cannot be used.
  package init(ofLinks defect: Defect) {
    self.init(.resolveHook, "what the resolve hook printed cannot be used: \(defect)")
  }
}

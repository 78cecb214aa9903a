/// What the hook `resolve` prints: lines as in a job, which hold for one attempt (spool.5, HOOKS). They may contain
/// secrets, and are neither written anywhere nor shown.
package struct HookLinks: Sendable {
  private var request = JobRequest()

  /// - Parameter isForURL: whether the job has a URL of its own, which the lines may be for.
  /// - Throws: ``Defect`` with the number of the line. It quotes nothing of the line.
  package init(_ output: [UInt8], isForURL: Bool) throws(Defect) {
    let lines = output.split(separator: 0x0A, omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      do throws(InvalidValue) {
        try read(line, number: index + 1)
      } catch {
        throw Defect(line: index + 1, reason: error.reason)
      }
    }
    if !request.urls.isEmpty { return }
    if !isForURL { throw Defect(line: nil, reason: "no `url:` line, and the job has no URL") }
    // A dropper chose the job's URL, and must not get what the hook prints for another.
    if request.headers.contains(where: { $0.host == nil }) {
      throw Defect(line: nil, reason: "a `header:` without a `url:` has to name its host, as in header@mirror.example")
    }
  }

  private mutating func read(_ line: ArraySlice<UInt8>, number: Int) throws(InvalidValue) {
    let text = try JobText.decoded(line, isFirst: number == 1)
    let content = trimmed(text[...])
    if content.isEmpty || content.utf8.first == UInt8(ascii: "#") { return }
    let head = content.prefix(before: ":")
    let rest = content[head.endIndex...]
    let written: (key: JobKey, value: WrittenValue)
    if rest.begins(with: "://") {
      written = (.url, WrittenValue(text: String(content), line: number))
    } else {
      guard !rest.isEmpty, let (key, host) = JobKey.find(head), Self.isAllowed(key) else {
        throw InvalidValue("neither a URL nor one of `url:`, `header:`, `size:` and the digests")
      }
      written = (key, WrittenValue(text: String(trimmed(rest.dropFirstBytes())), host: host, line: number))
    }
    do throws(Defect) { try written.key.set(written.value, in: &request) } catch {
      throw InvalidValue(error.reason)
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
  /// What the payload must be.
  package var expected: Expectation { request.expected }
}

extension Failure {
  /// The failure of a job for which the hook `resolve` printed what cannot be used.
  package init(ofLinks defect: Defect) {
    self.init(.resolveHook, "what the resolve hook printed cannot be used: \(defect)")
  }
}

internal import Spool
internal import Transfer

/// One of a job's URLs, or of those that the hook `resolve` printed.
struct MirrorURL: Sendable {
  let number: Int
  /// As in the job. May contain secrets. If the hook printed it, so may its path: ``URLParts/isPathSecret``.
  let url: String
  let parts: URLParts

  /// Whether the host is an address, so that there is no other address family to try.
  var isAddress: Bool { parts.host.begins(with: "[") || parts.host.utf8.allSatisfy { $0 == 0x2E || 0x30...0x39 ~= $0 } }

  func source(of request: JobRequest) -> DataSource {
    if parts.isPathSecret, let text = request.resolve?.text { return DataSource(resolve: text) }
    return DataSource(Resource(parts))
  }

  /// The URLs of a request, checked.
  /// - Parameter areFromHook: whether the hook `resolve` printed them.
  /// - Parameter first: the first one, if it has been read already.
  /// - Throws: ``Failure``: `malformed`, or `resolve-hook`; `protocol`.
  static func all(
    of request: JobRequest, _ protocols: Set<Scheme>, areFromHook: Bool = false, first: URLParts? = nil
  ) throws(Failure) -> [MirrorURL] {
    var mirrors: [MirrorURL] = []
    for (index, line) in request.urls.enumerated() {
      let parts: URLParts
      do throws(URLProblem) {
        parts = if index == 0, let first { first } else { try URLParts(line.text, isPathSecret: areFromHook) }
      } catch {
        if areFromHook { throw Failure(ofLinks: Defect(line: line.number, reason: "url: \(error.reason)")) }
        throw Failure(.malformed, "url: \(error.reason)", line: line.number)
      }
      guard protocols.contains(parts.scheme) else {
        let whose = areFromHook ? " of the resolve hook's URL" : ""
        throw Failure(
          .protocol, "the scheme \(parts.scheme)\(whose) is not enabled: see --protocols",
          line: areFromHook ? nil : line.number)
      }
      mirrors.append(MirrorURL(number: index + 1, url: line.text, parts: parts))
    }
    return mirrors
  }
}

extension JobRequest {
  func headers(for url: URLParts) -> [String] { headers(for: url.host, isEncrypted: url.scheme.isEncrypted) }
}

extension FetchRequest {
  /// What all requests of a job to this mirror have in common.
  init(_ mirror: MirrorURL, _ request: JobRequest, id: UInt64) {
    self.init(
      id: id, url: mirror.parts, headers: request.headers(for: mirror.parts), idleTimeoutSeconds: request.idleTimeout)
    floor = request.effectiveMinimumRate.map { RateFloor(bytesPerSecond: $0.bytesPerSecond, seconds: $0.seconds) }
    (totalTimeoutSeconds, group) = (request.totalTimeout, id)
    (userAgent, referer) = (request.userAgent, request.referer)
    needsEncryptionForLogin = request.isOffered
  }

  func asking(for plan: ResumePlan, _ manner: FetchPolicy.Manner) -> FetchRequest {
    var request = self
    request.rangeStart = plan.offset > 0 || plan.last != nil ? plan.offset : nil
    (request.rangeEnd, request.ifRange) = (plan.last, plan.ifRange)
    request.needsFreshConnection = manner.isOnFreshConnection
    request.addressFamily = manner.family
    request.decodes = manner.isDecoding
    return request
  }
}

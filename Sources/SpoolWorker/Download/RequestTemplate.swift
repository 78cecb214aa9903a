internal import Spool
internal import Transfer

extension JobRequest {
  /// The header fields of a request.
  func headers(for url: URLParts) -> [String] { headers(for: url.host, isEncrypted: url.scheme.isEncrypted) }
}

/// The common part of all requests to one mirror.
struct RequestTemplate {
  /// Its id and the ids after it, one for each connection, are reserved for the job.
  private var common: FetchRequest

  var id: UInt64 { common.id }

  init(_ mirror: MirrorURL, _ request: JobRequest, id: UInt64) {
    common = FetchRequest(
      id: id, url: mirror.url, headers: request.headers(for: mirror.parts),
      idleTimeoutSeconds: request.idleTimeout,
      floor: request.effectiveMinimumRate.map { RateFloor(bytesPerSecond: $0.bytesPerSecond, seconds: $0.seconds) },
      totalTimeoutSeconds: request.totalTimeout, group: id)
    (common.userAgent, common.referer) = (request.userAgent, request.referer)
    common.ask(for: mirror.url, mirror.parts)
    common.isPathSecret = mirror.parts.isPathSecret
    common.needsEncryptionForLogin = request.isOffered
  }

  /// - Parameter isPiece: whether it requests a first piece, which several connections may follow.
  func request(_ manner: FetchPolicy.Manner, _ plan: ResumePlan, isPiece: Bool) -> FetchRequest {
    var request = common
    request.rangeStart = plan.offset > 0 || plan.last != nil ? plan.offset : nil
    (request.rangeEnd, request.ifRange) = (plan.last, plan.ifRange)
    request.keepsToHTTP1 = manner.keepsToHTTP1 || isPiece
    request.needsFreshConnection = manner.isOnFreshConnection
    request.addressFamily = manner.family
    request.decodes = manner.isDecoding
    return request
  }
}

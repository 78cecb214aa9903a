internal import Spool
internal import Transfer

/// What all requests to one mirror have in common.
struct RequestTemplate {
  /// Its id and those that follow it, one for each connection, are the job's own.
  private let common: FetchRequest

  var id: UInt64 { common.id }

  init(_ mirror: MirrorURL, _ request: JobRequest, id: UInt64) {
    common = FetchRequest(
      id: id, url: mirror.url, headers: request.headers(for: mirror.parts.host),
      idleTimeoutSeconds: request.idleTimeout,
      floor: request.effectiveMinimumRate.map { RateFloor(bytesPerSecond: $0.bytesPerSecond, seconds: $0.seconds) },
      totalTimeoutSeconds: request.totalTimeout, bytesPerSecond: request.limitRate, group: id)
  }

  /// - Parameter isPiece: whether it asks for a first piece, beside which there may be other connections.
  func request(_ manner: FetchPolicy.Manner, _ plan: ResumePlan, isPiece: Bool) -> FetchRequest {
    var request = common
    request.rangeStart = plan.offset > 0 || plan.last != nil ? plan.offset : nil
    (request.rangeEnd, request.ifRange) = (plan.last, plan.ifRange)
    request.keepsToHTTP1 = manner.keepsToHTTP1 || isPiece
    request.needsFreshConnection = manner.isOnFreshConnection
    request.addressFamily = manner.family
    return request
  }
}

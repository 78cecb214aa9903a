internal import Spool
internal import Transfer

/// Fetches the pieces of complete data again that are wrong (spool.5, PIECES), and puts them in their places: from a
/// mirror that did not send them, before one that did.
@WorkerLoop final class PieceRepair: RunningTransfer {
  private let data: PartData
  private let list: PieceList
  private let context: AttemptContext
  private var engine: (any Fetcher)?
  private var isStopped = false
  private(set) var fetched: UInt64 = 0

  init(_ data: PartData, _ list: PieceList, _ context: AttemptContext) {
    (self.data, self.list, self.context) = (data, list, context)
  }

  func stop() {
    isStopped = true
    engine?.cancel(context.requests)
  }

  /// - Parameter mirrors: the first one is asked first.
  /// - Returns: the failures of the mirrors; empty if all pieces are right.
  func run(_ wrong: [Int], _ mirrors: [MirrorURL]) async throws -> [Failure] {
    context.log("wrong-pieces", Fields().with("count", wrong.count).with("at", range(wrong[0]).lowerBound))
    try await data.part.makeDurable(context.environment.durable)
    let mark = try await data.beginReplacing(from: range(wrong[0]).lowerBound)
    var (left, failures, hasParts): ([Int], [Failure], Bool) = (wrong, [], false)
    var mirrors = mirrors
    for hasSent in [false, true] {
      for mirror in mirrors {
        for piece in left where data.hasSent(mirror.number, range(piece)) == hasSent {
          if let failure = try await fetch(piece, mirror) {
            failures.append(failure)
            mirrors.removeAll { $0.number == mirror.number }
            break
          }
          hasParts = true
          if try await isRight(piece) { left.removeAll { $0 == piece } }
        }
      }
    }
    try await data.endReplacing(from: mark)
    if left.isEmpty {
      context.log("repaired", Fields().with("count", wrong.count))
      return []
    }
    let others = failures.filter { $0.code != .badResponse && !$0.refusesRanges }
    // No mirror sends a part of the file, so the next request is for all that follows. A mirror that refuses a range
    // would refuse that as well.
    if !hasParts, others.count < failures.count, others.allSatisfy(\.isServerAway) {
      try await data.cutBack(to: failures.contains(where: \.refusesRanges) ? 0 : range(left[0]).lowerBound)
    }
    let reason = "\(left.count) pieces are wrong, the first of them piece \(left[0] + 1) of \(list.count)"
    return [Failure(.wrongPiece, reason)] + others
  }

  private func range(_ piece: Int) -> Range<UInt64> { list.range(of: piece, in: data.part.length) }

  private func isRight(_ piece: Int) async throws -> Bool {
    guard let reading = data.part.pieceReading else { return false }
    return try await runBlocking { try reading.isRight(piece) }
  }

  /// - Returns: why the mirror did not send the piece; nil if it did.
  private func fetch(_ piece: Int, _ mirror: MirrorURL) async throws -> Failure? {
    let engine = try context.engine()
    self.engine = engine
    if isStopped { throw JobStop.cancelled }
    let range = range(piece)
    if range.isEmpty { return nil }
    // Right before the request: whoever may ask a server whose rest is over keeps all others from it.
    if let rest = context.obstacle(mirror) { return rest }
    let isBounded = mirror.parts.scheme.hasBoundedRanges
    let plan = ResumePlan(
      offset: range.lowerBound, last: isBounded ? range.upperBound - 1 : nil, ifRange: nil, comparesSizeOnly: true)
    var request = FetchRequest(mirror, data.request, id: context.requests).asking(for: plan, .init(connections: 1))
    request.conditions = [FetchRequest.pastCaches]
    let sink = PieceSink(data, range, plan, mirror)
    let result = await engine.fetch(request, into: sink)
    fetched += result.bytesReceived
    if isStopped { throw JobStop.cancelled }
    if let error = sink.error { throw error }
    if sink.hasAll {
      context.answered(mirror)
      return nil
    }
    let failure: Failure
    switch result.end {
    case .cancelled: throw JobStop.cancelled
    case .failed(let reason): failure = mirror.failure(reason, FetchPolicy.Manner(connections: 1))
    // Of the last piece, the length may be wrong as well.
    case .complete:
      let code: FailureCode = range.upperBound == data.part.length ? .badResponse : .shortBody
      failure = Failure(code, "\(mirror.parts.host) sent a part of a piece")
    case .refused: failure = sink.refusal ?? Failure(.badResponse, "\(mirror.parts.host) sent no such range")
    }
    return context.judged(failure, isOfOther: result.isOfOtherServer, mirror)
  }
}

extension Failure {
  /// Whether the status is about the request, not about the file (RFC 9110 sections 15.5.1 and 15.6.2).
  fileprivate var refusesRanges: Bool { [400, 501].contains(status) }
}

/// Puts the bytes of one piece in their place. Called on libcurl's thread, which is the loop's.
private final class PieceSink: FetchSink {
  private let data: PartData
  private let range: Range<UInt64>
  private let plan: ResumePlan
  private let mirror: MirrorURL
  private var position: UInt64
  private(set) var refusal: Failure?
  private(set) var error: (any Error)?

  init(_ data: PartData, _ range: Range<UInt64>, _ plan: ResumePlan, _ mirror: MirrorURL) {
    (self.data, self.range, self.plan, self.mirror) = (data, range, plan, mirror)
    position = range.lowerBound
  }

  var hasAll: Bool { position == range.upperBound }

  func accept(_ response: Response) -> Bool {
    let asked = ResponseVerdict.Asked(
      mirror.parts, mirror: mirror.number, plan: plan,
      // Its digest proves the piece, whatever the validators are by now.
      version: RemoteVersion(mirror: mirror.number, size: data.part.length, etag: nil, modified: nil),
      request: data.request)
    switch ResponseVerdict.judge(response, asked) {
    case .append(let version):
      // What is right of a last piece is not, if the file's length is wrong.
      if let size = version.size, size != data.part.length { return false }
      if case .range(range.lowerBound, _, _) = response.content { return true }
      // Not asked for, but it begins with the piece.
      if range.lowerBound == 0, case .whole = response.content { return true }
    case .fail(let failure): refusal = failure
    case .again, .replace, .complete: break
    }
    return false
  }

  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let count = min(bytes.count, Int(range.upperBound - position))
    do throws(SpoolError) {
      try data.replace(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: position)
    } catch {
      self.error = error
      return false
    }
    position += UInt64(count)
    return count == bytes.count
  }
}

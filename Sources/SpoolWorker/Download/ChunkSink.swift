internal import Spool
internal import Transfer

/// Receives the response for one chunk: judges the head by the same rules as for a resumed transfer, then takes the
/// body.
final class ChunkSink: FetchSink {
  private let data: PartData
  private let window: ChunkWindow
  private let request: ChunkPlan.Request
  private let plan: ResumePlan
  private let mirror: MirrorURL
  /// The file offset at which the response ends, as it states, and the offset of the next byte.
  private var statedEnd: UInt64 = 0
  private var position: UInt64

  /// Why the response was refused.
  private(set) var refusal: Refusal?
  enum Refusal {
    /// It belongs to another version, or is not the requested range.
    case differs(String)
    /// It is the whole of the same version: the server does not support If-Range.
    case ignoresIfRange
    /// This connection gets no data from this mirror.
    case failed(Failure)
    /// More bytes came than the response had stated, or others than another response had, so none of them is trusted.
    case lied(FetchPolicy.Outcome)
    /// The data cannot be written.
    case broken(any Error)
  }

  init(_ data: PartData, _ window: ChunkWindow, _ request: ChunkPlan.Request, plan: ResumePlan, mirror: MirrorURL) {
    self.data = data
    self.window = window
    self.request = request
    self.plan = plan
    self.mirror = mirror
    position = request.range.lowerBound
  }

  func accept(_ response: Response) -> Bool {
    let asked = ResponseVerdict.Asked(
      mirror.parts, mirror: mirror.number, plan: plan, version: data.version, request: data.request)
    switch ResponseVerdict.judge(response, asked) {
    case .append:
      // The verdict guarantees a valid range from the plan's offset on. It may end early, but not late (RFC 9110
      // section 15.3.7).
      if plan.offset == request.range.lowerBound, case .range(_, let last, _) = response.content,
        last < request.range.upperBound
      {
        statedEnd = last + 1
        return true
      }
      refusal = .differs("the range ends behind \(request.range.upperBound - 1)")
    case .replace(let whole, _) where whole.ignoresIfRange: refusal = .ignoresIfRange
    case .replace: refusal = .differs("the file has changed, or there are no ranges")
    case .startOver(let reason), .useless(let reason), .askUnbounded(let reason), .askHTTP1(let reason),
      .askDecoded(let reason):
      refusal = .differs(reason)
    case .complete: refusal = .differs("the file ends at \(plan.offset)")
    case .fail(let failure):
      let isOther = failure.code.isMismatch || failure.code == .otherKind
      refusal = isOther ? .differs(failure.reason) : .failed(failure)
    }
    return false
  }

  var isFull: Bool { data.isFull }

  var hasAll: Bool { statedEnd > 0 && position >= statedEnd }

  /// Whether the response ended before its end. It may also have been stopped just after an error page had come.
  var isBroken: Bool { !hasAll }

  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    position += UInt64(bytes.count)
    if position > statedEnd {
      refusal = .lied(.useless("\(mirror.parts.host) sent more than the range that it stated"))
      return false
    }
    do {
      try window.take(bytes, on: request.connection, host: mirror.parts.host)
      return true
    } catch is ChunkWindow.Difference {
      refusal = .lied(.differs("two answers differ before \(position)"))
    } catch let failure as Failure where failure.code == .badResponse {
      refusal = .failed(failure)
    } catch {
      refusal = .broken(error)
    }
    return false
  }
}

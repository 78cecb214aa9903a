internal import Spool
internal import Transfer

/// Receives one response: judges the head, then takes the body. Called on libcurl's thread, which is the loop's.
final class PartSink: FetchSink {
  private let data: PartData
  private let plan: ResumePlan
  private let mirror: MirrorURL
  /// The mark at which the response's bytes begin.
  private var began: Mark?
  /// The file offset at which its bytes begin, which may be before the end of the data.
  private var start: UInt64 = 0
  /// The file offset at which the response ends, as it states; nil if it does not.
  private(set) var statedEnd: UInt64?
  /// What was done with the data that the response replaces, and its length in bytes; nil if it replaces none.
  private(set) var replaced: (old: ResponseVerdict.OldData, length: UInt64)?

  /// Why the response was refused.
  private(set) var refusal: Refusal?
  enum Refusal {
    case startOver(String), useless(String), askUnbounded(String), askHTTP1(String), askDecoded(String)
    case complete
    /// A byte of the data that was in doubt is another one.
    case differs
    case failed(any Error)
  }

  init(_ data: PartData, plan: ResumePlan, mirror: MirrorURL) {
    self.data = data
    self.plan = plan
    self.mirror = mirror
  }

  func accept(_ response: Response) -> Bool {
    let asked = ResponseVerdict.Asked(
      mirror.parts, mirror: mirror.number, plan: plan, version: data.version, request: data.request,
      dataLength: data.dataLength,
      answers: data.answers)
    do {
      switch ResponseVerdict.judge(response, asked) {
      case .append(let version):
        try begin(version, response)
        return true
      case .replace(let version, let old):
        if data.dataLength > 0 { replaced = (old, data.dataLength) }
        try data.prepareForWhole(keeping: old)
        try begin(version, response)
        return true
      case .startOver(let reason): refusal = .startOver(reason)
      case .useless(let reason): refusal = .useless(reason)
      case .askUnbounded(let reason): refusal = .askUnbounded(reason)
      case .askHTTP1(let reason): refusal = .askHTTP1(reason)
      case .askDecoded(let reason): refusal = .askDecoded(reason)
      case .complete: refusal = .complete
      case .fail(let failure): refusal = .failed(failure)
      }
    } catch {
      refusal = .failed(error)
    }
    return false
  }

  private func begin(_ version: RemoteVersion, _ response: Response) throws {
    try data.begin(version)
    (began, start, statedEnd) = (data.mark, data.position, response.statedEnd)
    // After the size is journaled. A job that waits for space is then not requested again until there is enough.
    try data.checkSpace()
  }

  var isFull: Bool { data.isFull }

  var hasAll: Bool { statedEnd.map { data.position >= $0 } ?? false }

  /// Notes the end of the response: whether it broke off.
  func noteEnd(isBroken: Bool) {
    if began != nil { data.noteEnd(ofAnswerFrom: start, isBroken: isBroken && !hasAll) }
  }

  /// Cuts off the bytes of this response. A response that is wrong about its end may be wrong about all of its bytes.
  func takeBack() throws(SpoolError) {
    if let began { try data.cutBack(to: began) }
  }

  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    do {
      if let statedEnd, data.position + UInt64(bytes.count) > statedEnd {
        try takeBack()
        refusal = .useless("\(mirror.parts.host) sent more than the range that it stated")
        return false
      }
      guard let compared = try data.compare(bytes) else {
        refusal = .differs
        return false
      }
      if compared < bytes.count {
        try data.append(UnsafeRawBufferPointer(rebasing: bytes[compared...]), host: mirror.parts.host)
      }
      return true
    } catch {
      refusal = .failed(error)
      return false
    }
  }
}

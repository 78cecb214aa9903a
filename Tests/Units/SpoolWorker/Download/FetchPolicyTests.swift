import Spool
import Testing
import Transfer

@testable import SpoolWorker

/// What is tried after a failure, and which failure is recorded in the end.
@Suite struct FetchPolicyTests {
  private let nothing = FetchPolicy.Progress(length: 0, generation: 0)

  private func policy() -> FetchPolicy { FetchPolicy(host: "h", connections: 1, from: nothing) }

  /// Fails until the policy has no other way.
  /// - Parameter failures: of the requests in turn; the last one is that of all further ones.
  private func end(_ failures: [Failure], gained: UInt64 = 0) -> (Failure, requests: Int) {
    var policy = policy()
    var progress = nothing
    for number in 0..<10 {
      let failure = failures[min(number, failures.count - 1)]
      if number == 0 { progress.length = gained }
      do throws(Failure) {
        _ = try policy.after(.failed(failure, family: .ipv4), progress)
      } catch {
        return (error, number + 1)
      }
    }
    return (Failure(.io, "no end"), 10)
  }

  private static let dead = Failure(.connect, "dead")

  /// A host with one address family: nobody listens at the other.
  @Test(arguments: [FailureCode.tls, .badResponse, .cut, .stalled, .shortBody], [FailureCode.connect, .resolve])
  func theServerThatWasReachedCounts(code: FailureCode, then unreached: FailureCode) {
    let failures =
      Array(repeating: Failure(code, "reached"), count: code == .tls ? 1 : 2) + [Failure(unreached, "dead")]
    let (failure, requests) = end(failures)
    #expect(failure.code == code && failure.reason == "reached" && requests == failures.count)
    #expect(failure.tried?.hasSuffix("the other address family") == true)
  }

  /// Also where no fresh connection can be made.
  @Test func ofAnyOtherWay() throws {
    #expect(end([Failure(.cut, "reached"), Self.dead]).0.code == .cut)
    var policy = policy()
    _ = try policy.after(.again(.useless, "multipart"), nothing)
    let failure = #expect(throws: Failure.self) {
      try policy.after(.failed(Self.dead, family: .ipv4), nothing)
    }
    #expect(failure?.code == .badResponse && failure?.reason == "multipart")
  }

  @Test func whatTheOtherWayShowsCounts() {
    #expect(end([Failure(.tls, "reached"), Failure(.http, "gone", status: 404)]).0.status == 404)
    #expect(end([Self.dead]).0.code == .connect)
  }

  /// The server was there and has gone.
  @Test func afterProgressTheLastOneCounts() {
    #expect(end([Failure(.cut, "reached"), Self.dead], gained: 100_000).0.code == .connect)
  }

  @Test func nothingElseIsTriedBeforeTheServersTime() {
    let (failure, requests) = end([Failure(.badResponse, "202", retryAfter: 7200)])
    #expect(requests == 1 && failure.retryAfter == 7200)
  }

  /// What comes again after a wrong end was cut off is progress, piece by piece, but not for ever.
  @Test func afterACutEachPieceCounts() throws {
    var policy = policy()
    for generation in 1...4 {
      _ = try policy.after(.failed(Failure(.cut, "junk")), .init(length: 200_000, generation: generation - 1))
      _ = try policy.after(.again(.differs, "junk"), .init(length: 100, generation: generation))
    }
    func piece(_ length: UInt64) throws(Failure) -> String? {
      try policy.after(.failed(Failure(.cut, "a piece")), .init(length: length, generation: 4))?.event
    }
    for length in 101...150 { #expect(try piece(UInt64(length)) == "interrupted") }
    #expect(throws: Failure.self) { for length in 151...999 { _ = try piece(UInt64(length)) } }
  }

  @Test func decodingIsAskedForOverOneConnection() throws {
    var policy = FetchPolicy(host: "h", connections: 4, from: nothing)
    _ = try policy.after(.again(.askDecoded, "gzip"), nothing)
    #expect(policy.manner.isDecoding && policy.manner.connections == 1)
  }
}

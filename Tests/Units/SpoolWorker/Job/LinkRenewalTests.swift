import Spool
import Testing

@testable import SpoolWorker

@Suite struct LinkRenewalTests {
  private func refused(_ status: Int) -> Failure { Failure(.http, "no", status: status) }

  private func progress(_ length: UInt64) -> FetchPolicy.Progress { .init(length: length, generation: 0) }

  @Test func `once without progress, and again after progress`() {
    var renewal = LinkRenewal()
    #expect(renewal.status(of: [refused(403)], progress(100)) == 403)
    #expect(renewal.status(of: [refused(403)], progress(100)) == nil)
    renewal = LinkRenewal()
    #expect(renewal.status(of: [refused(401)], progress(200)) == 401)
    #expect(renewal.status(of: [refused(401)], progress(300)) == 401)
    #expect(renewal.status(of: [refused(401)], progress(300)) == nil)
  }

  @Test func `starting over is no progress`() {
    var renewal = LinkRenewal()
    #expect(renewal.status(of: [refused(410)], progress(5000)) == 410)
    #expect(renewal.status(of: [refused(410)], .init(length: 4000, generation: 1)) == nil)
  }

  @Test func `small steps have an end`() {
    var renewal = LinkRenewal()
    var asked = 0
    while renewal.status(of: [refused(400)], progress(UInt64(asked + 1))) != nil { asked += 1 }
    #expect((50...101).contains(asked))
  }

  @Test func `only what an expired link explains`() {
    for status in [402, 404, 405, 429, 500] {
      var renewal = LinkRenewal()
      #expect(renewal.status(of: [refused(status)], progress(0)) == nil, "\(status)")
    }
    var renewal = LinkRenewal()
    #expect(renewal.status(of: [refused(403), Failure(.mismatchSize, "wrong")], progress(0)) == nil)
    #expect(renewal.status(of: [], progress(0)) == nil)
    #expect(renewal.status(of: [Failure(.connect, "no"), refused(403)], progress(0)) == 403)
  }
}

import TestSupport
import Testing

@testable import Spool

/// What two mounts of one spool show each other.
@Suite struct PeerTraitsTests {
  private var fit: PeerTraits {
    var traits = PeerTraits()
    (traits.appearsAfter, traits.goneAfter, traits.races) = (0, 0, 20)
    return traits
  }

  /// Two spools of one process on a local file system are as two mounts that share everything.
  @Test func oneFileSystemIsFit() throws {
    let fixture = try Fixture()
    let traits = try PeerTrial(fixture.spool, fixture.another(host: "beta")).run()
    #expect(traits.obstacles == [] && traits.limits == [], "\(traits)")
    #expect(traits.races == 20 && traits.doubles == 0 && traits.losses == 0)
    #expect(TestSupport.names(in: fixture.files.path("tmp"), isHiddenToo: true) == [])
  }

  @Test func whatMakesAPairUnfit() {
    #expect(fit.obstacles == [] && fit.limits == [])
    var unseen = fit
    unseen.appearsAfter = nil
    #expect(unseen.obstacles.count == 1)
    var double = fit
    double.doubles = 1
    #expect(double.obstacles.first?.contains("1 went to both") == true)
    var lost = fit
    lost.losses = 1
    #expect(lost.obstacles.count == 1)
  }

  @Test func whatLimitsAPair() {
    var traits = fit
    (traits.locksAreSeen, traits.writersAreSeen, traits.clockOffset) = (false, false, -600)
    (traits.appearsAfter, traits.goneAfter) = (2500, nil)
    #expect(traits.limits.count == 5 && traits.obstacles == [])
  }
}

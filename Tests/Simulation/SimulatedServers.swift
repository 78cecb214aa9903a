import SystemPackage
import TestSupport

@testable import Spool
@testable import Transfer

/// The servers of the simulated world. Each resource has versions, and a manner to serve them that a seed draws. As
/// long as faults last, requests fail in every way in which the protocol can tell that they did.
final class SimulatedServers {
  struct Version {
    /// Seconds of the world's time, from which on it is served.
    let since: Int64
    let size: Int
    let number: UInt64
  }

  enum Validator: CaseIterable { case strongETag, weakETag, lastModified, none }

  /// What a server does wrong with a resource, at some requests as long as servers are faulty.
  enum Lie: CaseIterable {
    case none
    /// It sends the range of the new version, whatever If-Range says.
    case ignoresIfRange
    /// It sends another range than it was asked for, and says so.
    case otherRange
    /// It sends more than the range that it states.
    case surplus
    /// It sends a page that asks for a login.
    case page
    /// It says that there is nothing behind the data.
    case nothingThere
    /// It sends wrong bytes. Only a declared digest shows that.
    case damage
  }

  struct Resource {
    let id: Int
    let versions: [Version]
    let validator: Validator
    let hasRanges: Bool
    /// Without it, the end of the connection ends the body.
    let tellsLength: Bool
    let lie: Lie
    /// Whether its job declares the digest, if it is dropped by a program that can.
    let hasDigest: Bool
    /// Whether another server has it as well.
    let hasMirror: Bool
    /// The servers that redirects lead to, any of them as long as there are faults; empty for none.
    let places: [String]
    /// Whether the servers behind a name have different versions, as long as there are faults.
    let alternates: Bool
    /// The bytes of each version; empty where chance makes them.
    var texts: [[UInt8]] = []
  }

  private let world: World
  /// How many jobs the workers together may fetch at once.
  let perHost: Int
  /// The requests under way.
  private var requests: [(process: Process, job: UInt64?, host: String, id: Int)] = []
  /// Seconds by which the versions of a resource come sooner.
  private var ahead: [Int: Int64] = [:]
  /// The running answers of these resources break off.
  private var broken: Set<Int> = []
  /// The version of each resource that was served last.
  private var lastServed: [Int: UInt64] = [:]
  /// Where an answer has broken off with something behind its last byte, which the next one may do as well.
  private var breaks: [Int: (end: Int, junk: [UInt8])] = [:]
  private var resources: [Int: Resource] = [:]
  private var declared: Set<Int> = []
  /// Whose published payloads have been damaged since.
  var rotten: Set<Int> = []
  /// Of those, what a person could not have fetched again, because somebody else moved the job: a worker may take the
  /// receipt for done.
  var refused: Set<Int> = []
  /// Whether servers and networks fail.
  var areFaulty = true
  /// Until these times, hosts cannot be reached.
  private var outages: [String: Int64] = [:]
  /// Requests of each resource since ``areFaulty`` is false.
  private(set) var soundRequests: [Int: Int] = [:]
  /// How often something of a sort was drawn.
  private let badness: Int
  /// Whether resources change and change back within seconds.
  let flips: Bool

  init(_ world: World) {
    self.world = world
    badness = world.pick([2, 4, 10, 1000])
    perHost = world.pick([1, 2, 4])
    flips = world.isChance(1, in: 4)
    world.onSlowFlush = { [unowned self] in change(during: $0) }
  }

  /// While a worker makes data durable, what it fetches may get its next version, so that it begins anew.
  private func change(during process: Process) {
    guard areFaulty, limits.isEmpty, world.isChance(1, in: 2) else { return }
    for id in Set(requests.filter { $0.process === process }.map(\.id)).sorted() {
      let time = now + (ahead[id] ?? 0)
      guard let next = resource(id).versions.first(where: { $0.since > time }) else { continue }
      ahead[id] = next.since - now
      broken.insert(id)
      world.tell("version \(next.number) of \(id) comes now")
    }
  }

  /// - Returns: whether the running answer breaks off here.
  func breaksOff(_ id: Int) -> Bool { broken.remove(id) != nil }

  // MARK: how much is asked at once

  func began(_ job: UInt64?, of id: Int, at host: String, _ process: Process) {
    // A job that goes on to its other server keeps its slot.
    if id > 0, hasMirror(id) || host == "l" { return }
    requests.append((process, job, host, id))
    // Who does not see others' locks does not see their slots.
    let seesAll = world.disk.hostOfLocks == nil
    let others = requests.filter {
      !$0.process.isDead && $0.host == host && (seesAll || $0.process.host == process.host)
    }
    let jobs = Set(others.map { [UInt64($0.process.number), $0.job ?? 0] })
    // The slots of a worker that is stopped for long do not count.
    if !others.contains(where: { $0.process.hadTrouble }), jobs.count > perHost {
      world.blame("\(jobs.count) transfers from \(host), not \(perHost)")
    }
  }

  func ended(_ job: UInt64?, at host: String, _ process: Process) {
    if let index = requests.firstIndex(where: { $0.process === process && $0.job == job && $0.host == host }) {
      requests.remove(at: index)
    }
  }

  // MARK: limits

  /// What a server allows, whether or not there are faults.
  enum Limit {
    /// So many answers in each window of so many seconds. `tells` is whether a refusal says when the next one begins.
    case quota(Int, window: Int64, tells: Bool)
    /// It cannot be reached before this time, in seconds.
    case away(until: Int64)
  }

  var limits: [String: Limit] = [:]
  /// The requests to each server with a limit, by windows.
  private(set) var counts: [String: [Int64: (asked: Int, refused: Int)]] = [:]

  /// - Returns: whether the answer is a refusal.
  private func refuses(_ host: String, _ answer: inout Answer) -> Bool {
    guard let limit = limits[host] else { return false }
    switch limit {
    case .away(let end):
      counts[host, default: [:]][0, default: (0, 0)].asked += 1
      if now < end { answer.failure = .connect }
    case .quota(let most, let window, let tells):
      counts[host, default: [:]][now / window, default: (0, 0)].asked += 1
      guard counts[host]?[now / window]?.asked ?? 0 > most else { return false }
      counts[host]?[now / window]?.refused += 1
      answer.status = 429
      answer.fields = [("content-length", "0")] + (tells ? [("retry-after", "\(window - now % window)")] : [])
    }
    return answer.failure != nil || answer.status != 200
  }

  // MARK: resources

  private var now: Int64 { world.disk.clock / 1_000_000_000 }

  func resource(_ id: Int) -> Resource {
    if let known = resources[id] { return known }
    let lie = world.isChance(1, in: 3) ? .none : world.pick(Lie.allCases)
    var versions = [Version(since: 0, size: size(), number: 1)]
    while flips, areFaulty, versions.count < 9 {
      let last = versions[versions.count - 1]
      versions.append(
        Version(
          since: max(last.since, now) + Int64(world.random(1...40)), size: last.size, number: 3 - last.number))
    }
    while versions.count < 4, world.isChance(1, in: 3) || versions.count == 1 && lie == .ignoresIfRange {
      let last = versions[versions.count - 1]
      // Often as long as the one before.
      var next = (size: world.isChance(2, in: 3) ? last.size : size(), number: last.number + 1)
      // An older one comes back.
      if versions.count > 1, world.isChance(1, in: 3) { next = (versions[0].size, versions[0].number) }
      versions.append(
        Version(
          since: max(last.since, now) + Int64(world.pick([1, 20, 100, 4000])), size: next.size, number: next.number))
    }
    let hasDigest = versions.count == 1 && world.isChance(1, in: 4)
    let resource = Resource(
      id: id, versions: versions,
      // Without a validator nothing is continued, and most lies are about that.
      validator: lie == .none && world.isChance(1, in: 2)
        ? world.pick(Validator.allCases) : world.pick([.strongETag, .strongETag, .lastModified]),
      hasRanges: lie != .none || !world.isChance(1, in: 4),
      tellsLength: !world.isChance(1, in: 8), lie: lie == .damage && !hasDigest ? .none : lie, hasDigest: hasDigest,
      hasMirror: world.isChance(1, in: 4),
      places: world.isChance(1, in: 5) ? world.pick([["r\(id)"], ["r\(id)", "q\(id)"]]) : [],
      alternates: versions.count > 1 && world.isChance(1, in: 2))
    resources[id] = resource
    return resource
  }

  /// Serves this one, and none that chance makes.
  func put(_ resource: Resource) { resources[resource.id] = resource }

  /// The pieces that a job names in place of a digest, or beside one.
  func declaredPieces(_ id: Int) -> PieceList? {
    let resource = resource(id)
    guard resource.hasDigest, id % 3 > 0 else { return nil }
    declared.insert(id)
    var maker = PieceList.Maker(length: 4096)
    Self.bytes(resource, resource.versions[0], 0..<resource.versions[0].size).withUnsafeBytes { maker.take($0) }
    return maker.list()
  }

  /// The digest that a job declares; nil if it declares none.
  func declaredDigest(_ id: Int) -> String? {
    let resource = resource(id)
    guard resource.hasDigest, id % 3 != 1 || resource.versions[0].size == 0 else { return nil }
    declared.insert(id)
    var checksum = Checksum()
    Self.bytes(resource, resource.versions[0], 0..<resource.versions[0].size).withUnsafeBytes { checksum.update($0) }
    return "\(checksum)"
  }

  func hasMirror(_ id: Int) -> Bool { resource(id).hasMirror }

  /// The most bytes of a resource.
  var sizes = [10, 3000, 40_000, 300_000]

  private func size() -> Int { world.random(0...world.pick(sizes)) }

  func version(of resource: Resource) -> Version {
    if resource.alternates, areFaulty { return world.pick(Array(resource.versions.prefix(2))) }
    return resource.versions.last { $0.since <= now + (ahead[resource.id] ?? 0) }!
  }

  /// Bytes of a version: those of two versions differ in one block only, wherever it lies.
  static func bytes(_ resource: Resource, _ version: Version, _ range: Range<Int>) -> [UInt8] {
    if !resource.texts.isEmpty { return Array(resource.texts[Int(version.number) - 1][range]) }
    let blocks = max(1, (version.size + blockSize - 1) / blockSize)
    let own = Int(UInt64(resource.id) &* 7919 &+ version.number &* 31) % blocks
    return range.map { index in
      let block = index / blockSize
      let seed = UInt64(resource.id) << 32 ^ UInt64(block) << 8 ^ (block == own ? version.number : 0)
      var value = (seed ^ UInt64(index % blockSize) << 48) &* 0x9E37_79B9_7F4A_7C15
      value ^= value >> 29
      return UInt8(truncatingIfNeeded: (value &* 0xBF58_476D_1CE4_E5B9) >> 40)
    }
  }

  private static let blockSize = 300

  /// The version that a payload is; nil if it is none.
  func version(_ id: Int, is bytes: [UInt8]) -> Version? {
    let resource = resource(id)
    return resource.versions.first { $0.size == bytes.count && Self.bytes(resource, $0, 0..<$0.size) == bytes }
  }

  // MARK: answers

  /// What becomes of a request.
  struct Answer {
    enum End { case complete, cut, shortBody, stall }

    /// Milliseconds until it begins.
    var wait: Int
    /// No answer comes.
    var failure: TransferFailure.Code?
    /// It is of another version than the last one.
    var isNew = false
    /// The server that a redirect led to.
    var place: String?
    var status = 200
    var fields: [(String, String)] = []
    var body: [UInt8] = []
    /// The offset in the file that the body begins at.
    var first = 0
    var end = End.complete
    /// Milliseconds between pieces of a few kilobytes.
    var interval = 1
    var pieceSize = 16_384
  }

  func answer(_ request: FetchRequest, host: String, id: Int) -> Answer {
    var answer = Answer(wait: world.random(1...world.pick([5, 300, 3000])))
    answer.interval = world.random(0...world.pick([1, 20, 2000]))
    answer.pieceSize = world.pick([100, 1000, 8000, 16_384])
    if refuses(host, &answer) { return answer }
    guard id > 0 else {
      (answer.status, answer.fields) = (404, [("content-length", "0")])
      return answer
    }
    if !areFaulty { soundRequests[id, default: 0] += 1 }
    if areFaulty, let failure = fault(host, &answer) {
      answer.failure = failure
      return answer
    }
    if answer.status != 200 { return answer }
    serve(request, resource(id), host, &answer)
    if areFaulty, !answer.body.isEmpty, isBad() || breaks[id] != nil { spoil(&answer, id) }
    return answer
  }

  private func isBad() -> Bool { world.isChance(1, in: badness) }

  /// - Returns: how the request fails before there is an answer; it may set another status.
  private func fault(_ host: String, _ answer: inout Answer) -> TransferFailure.Code? {
    if let end = outages[host], now < end { return .connect }
    guard isBad() else { return nil }
    switch world.random(1...10) {
    case 1:
      outages[host] = now + Int64(world.pick([5, 600, 260_000]))
      return .connect
    case 2: return .resolve
    case 3: return .tls
    case 4: return .stalled
    case 5: return .cut
    case 10: return world.pick([.proxy, .timeout, .badResponse])
    case 6:
      (answer.status, answer.fields) = (503, [("retry-after", "\(world.pick([1, 60, 7200]))")])
    case 7: (answer.status, answer.fields) = (429, world.isChance(1, in: 2) ? [("retry-after", "30")] : [])
    case 8: answer.status = world.pick([500, 502, 408])
    default: answer.status = 202
    }
    answer.fields.append(("content-length", "0"))
    return nil
  }

  private func serve(_ request: FetchRequest, _ resource: Resource, _ host: String, _ answer: inout Answer) {
    let version = version(of: resource)
    if !resource.places.isEmpty { answer.place = areFaulty ? world.pick(resource.places) : resource.places[0] }
    let host = answer.place ?? host
    if let last = lastServed.updateValue(version.number, forKey: resource.id), last != version.number {
      world.note(.otherVersion)
      answer.isNew = true
    }
    var range = 0..<version.size
    let etag = "\"\(host)-\(resource.id)-\(version.number)\""
    let modified = "Mon, 0\(version.number) Jan 2024 00:00:00 GMT"
    var fields: [(String, String)] = []
    var tag: String?
    switch resource.validator {
    case .strongETag: (tag, fields) = (etag, [("etag", etag)])
    case .weakETag: fields = [("etag", "W/\(etag)")]
    case .lastModified:
      (tag, fields) = (modified, [("last-modified", modified), ("date", "Sun, 09 Feb 2025 00:00:00 GMT")])
    case .none: break
    }
    if let tag, request.conditions.contains(where: { $0.hasSuffix(": \(tag)") }) {
      (answer.status, answer.fields) = (304, fields)
      return
    }
    if resource.hasRanges { fields.append(("accept-ranges", "bytes")) }
    let lies = areFaulty && world.isChance(1, in: 2)
    // Instead of a first answer it could not be told from the file.
    if lies, resource.lie == .page, request.rangeStart ?? 0 > 0 {
      answer.body = Array("<html>Please log in.</html>".utf8)
      answer.fields = [("content-type", "text/html"), ("content-length", "\(answer.body.count)")]
      return
    }
    let isConditionMet = request.ifRange.map { $0 == tag || lies && resource.lie == .ignoresIfRange } ?? true
    if resource.hasRanges, isConditionMet, let first = request.rangeStart.map({ Int($0) }) {
      guard first < version.size, !lies || resource.lie != .nothingThere || first == 0 else {
        answer.status = 416
        // The lie may state the length that is there, or the true one.
        let total = first > version.size ? version.size : world.pick([first, version.size])
        answer.fields = fields + [("content-range", "bytes */\(total)"), ("content-length", "0")]
        return
      }
      range = first..<min(version.size, request.rangeEnd.map { Int($0) + 1 } ?? version.size)
      if lies, resource.lie == .otherRange { range = world.random(0...first)..<range.upperBound }
      if lies, resource.lie == .surplus, world.isChance(1, in: 2) {
        range = range.lowerBound..<world.random(range.lowerBound + 1...range.upperBound)
      }
      answer.status = 206
      fields.append(("content-range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(version.size)"))
    }
    if resource.tellsLength || answer.status == 206 { fields.append(("content-length", "\(range.count)")) }
    answer.fields = fields
    (answer.body, answer.first) = (Self.bytes(resource, version, range), range.lowerBound)
    if lies, resource.lie == .surplus, answer.status == 206 {
      answer.fields.removeAll { $0.0 == "content-length" }
      answer.body += [UInt8](repeating: 7, count: world.random(1...5000))
    }
    if lies, resource.lie == .damage, declared.contains(resource.id), !answer.body.isEmpty {
      answer.body[world.random(0...answer.body.count - 1)] ^= 1
    }
  }

  /// What can happen to a body so that it shows.
  private func spoil(_ answer: inout Answer, _ id: Int) {
    let hasLength = answer.fields.contains { $0.0 == "content-length" }
    // The end of the connection would be the end of the file.
    guard hasLength else {
      answer.end = .stall
      return
    }
    let (whole, first) = (answer.body, answer.first)
    answer.end = world.pick([.cut, .shortBody, .stall])
    // Twice alike at most: answers that break off alike at a place are believed in the end.
    if let old = breaks.removeValue(forKey: id), first < old.end, old.end + old.junk.count < first + whole.count {
      answer.body = Array(whole[..<(old.end - first)]) + old.junk
      return
    }
    let length = world.random(0...max(0, whole.count - 1))
    answer.body = Array(whole[..<length])
    // Short ones would be alike by chance.
    guard world.isChance(1, in: 3), whole.count >= 64 else { return }
    // An error page, or something of the same length. One that fills the answer up could not be told from a whole one.
    let most = min(whole.count - length - 1, world.pick([1, 50, 5000, 60_000]))
    if most <= 0 { return }
    let count = world.random(1...most)
    let junk: [UInt8] =
      switch world.random(1...3) {
      case 1: (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 60) }
      case 2: [UInt8](repeating: 0, count: count)
      default: Array(whole[..<min(count, whole.count)])
      }
    answer.body += junk
    if world.isChance(1, in: 2) { breaks[id] = (first + length, junk) }
  }
}

internal import Spool

/// The minutes of the report, joined into at most ``mostBuckets`` of equal length. Pure.
struct TimeAxis: Equatable {
  /// The start of the first bucket, in minutes since the epoch.
  let first: Int64
  /// The length of a bucket, in minutes.
  let minutes: Int64
  /// The number of buckets; at least 1.
  let count: Int

  static let mostBuckets = 168
  /// Fewer would be blocks, and no course over the time. So the axis begins earlier than what happened.
  static let leastBuckets: Int64 = 30
  private static let (hour, day): (Int64, Int64) = (60, 1440)
  private static let lengths: [Int64] = [
    1, 5, 15, hour, 3 * hour, 6 * hour, 12 * hour, day, 7 * day, 28 * day, 365 * day, 3650 * day,
  ]

  /// - Parameters:
  ///   - used: the minutes in which something happened.
  ///   - since: the first minute that may be shown; nil if any may.
  init(of used: some Sequence<Int64>, since: Int64? = nil) {
    let all = used.reduce(nil as ClosedRange<Int64>?) { range, minute in
      range.map { min($0.lowerBound, minute)...max($0.upperBound, minute) } ?? minute...minute
    }
    let range = all ?? 0...0
    func buckets(_ length: Int64) -> Int64 {
      Self.floor(range.upperBound, length) - Self.floor(range.lowerBound, length) + 1
    }
    let length = Self.lengths.first { buckets($0) <= Self.mostBuckets } ?? Self.lengths[Self.lengths.count - 1]
    minutes = length
    let (start, end) = (Self.floor(range.lowerBound, length), Self.floor(range.upperBound, length))
    let earliest = since.map { min(start, Self.floor($0, length)) } ?? .min
    let begin = all == nil ? start : min(start, max(end - Self.leastBuckets + 1, earliest))
    first = begin * length
    count = Int(min(end - begin + 1, Int64(Self.mostBuckets)))
  }

  /// The number of the bucket of this length, counted from the epoch.
  static func floor(_ time: Int64, _ length: Int64) -> Int64 {
    time >= 0 ? time / length : -((-time + length - 1) / length)
  }

  /// The sums of the buckets.
  func sums(_ counts: ReportFacts.CountOverTime) -> [UInt64] {
    var sums = [UInt64](repeating: 0, count: count)
    for (minute, number) in counts.minutes {
      let index = Self.floor(minute - first, minutes)
      if sums.indices.contains(Int(index)) { sums[Int(index)] &+= number }
    }
    return sums
  }

  /// `2026-11-21 03:00`, or only the day if all buckets begin at midnight. In UTC.
  func label(_ index: Int) -> String {
    let text = Shown.time(Timestamp(seconds: (first + Int64(index) * minutes) * 60))
    return minutes % Self.day == 0 ? String(text.prefix(10)) : text
  }

  /// `5 minutes`, `hour`, `6 hours`, `day` and so on.
  var unit: String {
    func several(_ length: Int64, _ noun: String) -> String {
      minutes == length ? noun : "\(minutes / length) \(noun)s"
    }
    if minutes < Self.hour { return several(1, "minute") }
    return minutes < Self.day ? several(Self.hour, "hour") : several(Self.day, "day")
  }
}

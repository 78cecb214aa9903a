internal import Spool

/// The hours of the report, joined into at most ``mostBuckets`` of equal length. Pure.
struct TimeAxis: Equatable {
  /// The start of the first bucket, in hours since the epoch.
  let first: Int64
  /// The length of a bucket, in hours.
  let hours: Int64
  /// The number of buckets; at least 1.
  let count: Int

  static let mostBuckets = 168
  private static let lengths: [Int64] = [1, 3, 6, 12, 24, 7 * 24, 28 * 24, 365 * 24, 3650 * 24]

  /// - Parameter used: the hours in which something happened.
  init(of used: some Sequence<Int64>) {
    let all = used.reduce(nil as ClosedRange<Int64>?) { range, hour in
      range.map { min($0.lowerBound, hour)...max($0.upperBound, hour) } ?? hour...hour
    }
    let range = all ?? 0...0
    func buckets(_ length: Int64) -> Int64 {
      Self.floor(range.upperBound, length) - Self.floor(range.lowerBound, length) + 1
    }
    hours = Self.lengths.first { buckets($0) <= Self.mostBuckets } ?? Self.lengths[Self.lengths.count - 1]
    first = Self.floor(range.lowerBound, hours) * hours
    count = Int(min(buckets(hours), Int64(Self.mostBuckets)))
  }

  private static func floor(_ hour: Int64, _ length: Int64) -> Int64 {
    hour >= 0 ? hour / length : -((-hour + length - 1) / length)
  }

  /// The sums of the buckets.
  func sums(_ counts: ReportFacts.HourlyCount) -> [UInt64] {
    var sums = [UInt64](repeating: 0, count: count)
    for (hour, number) in counts.hours {
      let index = Self.floor(hour - first, hours)
      if sums.indices.contains(Int(index)) { sums[Int(index)] &+= number }
    }
    return sums
  }

  /// `2026-11-21 03:00`, or only the day if all buckets begin at midnight. In UTC.
  func label(_ index: Int) -> String {
    let text = Shown.time(Timestamp(seconds: (first + Int64(index) * hours) * 3600))
    return hours % 24 == 0 ? String(text.prefix(10)) : text
  }

  /// `hour`, `6 hours`, `day` and so on.
  var unit: String {
    switch hours {
    case 1: "hour"
    case 2..<24: "\(hours) hours"
    case 24: "day"
    default: "\(hours / 24) days"
    }
  }
}

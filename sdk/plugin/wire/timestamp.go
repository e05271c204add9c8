package wire

import "time"

// ParseTime reads a timestamp of the protocol: RFC 3339 in UTC with an upper-case
// T and Z, a date of the calendar from year 1 on, no leap second, and at most six
// digits of a second.
func ParseTime(s string) (time.Time, bool) { return parseTime(s) }

func parseTime[T string | []byte](s T) (time.Time, bool) {
	const layout = "2006-01-02T15:04:05"
	if len(s) < len(layout)+1 || len(s) > len(layout)+8 || s[len(s)-1] != 'Z' ||
		s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return time.Time{}, false
	}
	year, ok1 := two(s, 0)
	years, ok2 := two(s, 2)
	year = year*100 + years
	month, ok3 := two(s, 5)
	day, ok4 := two(s, 8)
	hour, ok5 := two(s, 11)
	minute, ok6 := two(s, 14)
	second, ok7 := two(s, 17)
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7) ||
		year < 1 || month < 1 || month > 12 || day < 1 || day > days(year, month) || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	micros := 0
	if fraction := s[len(layout) : len(s)-1]; len(fraction) > 0 {
		if fraction[0] != '.' || len(fraction) == 1 {
			return time.Time{}, false
		}
		for i := 1; i <= 6; i++ {
			micros *= 10
			if i < len(fraction) {
				if fraction[i] < '0' || fraction[i] > '9' {
					return time.Time{}, false
				}
				micros += int(fraction[i] - '0')
			}
		}
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, micros*1000, time.UTC), true
}

// two returns the number that two digits at i spell.
func two[T string | []byte](s T, i int) (int, bool) {
	a, b := s[i]-'0', s[i+1]-'0'
	return int(a)*10 + int(b), a <= 9 && b <= 9
}

func days(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// FormatTime writes t as the protocol wants it, in microseconds. A year beyond
// 9999 or before 1 has no spelling; the nearest that has one is written.
func FormatTime(t time.Time) string { return string(AppendTime(nil, t)) }

// AppendTime appends FormatTime(t) to dst.
func AppendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	switch {
	case year < 1:
		t = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
		year, month, day = t.Date()
	case year > 9999:
		t = time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
		year, month, day = t.Date()
	}
	hour, minute, second := t.Clock()
	dst = digits2(digits2(dst, year/100), year%100)
	dst = digits2(append(dst, '-'), int(month))
	dst = digits2(append(dst, '-'), day)
	dst = digits2(append(dst, 'T'), hour)
	dst = digits2(append(dst, ':'), minute)
	dst = digits2(append(dst, ':'), second)
	if micros := t.Nanosecond() / 1000; micros > 0 {
		dst = digits2(digits2(digits2(append(dst, '.'), micros/10000), micros/100%100), micros%100)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return append(dst, 'Z')
}

func digits2(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }
